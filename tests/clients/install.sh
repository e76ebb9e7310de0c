# Read by the scripts that drive clients: how what they need is installed.

# Installs by the rest of its arguments, unless that was done for this very LIST.
# usage: install LIST KEPT COMMAND...
install() {
    local list=$1 kept=$2
    shift 2
    cmp -s "$list" "$kept" && return
    "$@" >&2
    cp "$list" "$kept"
}
