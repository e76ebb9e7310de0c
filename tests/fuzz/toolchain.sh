# What the scripts of this folder share: which toolchain is the nightly one.

nightly=${ROCCO_NIGHTLY:-nightly}

# Ends the script with a word where there is no nightly toolchain.
need_nightly() {
  if ! cargo "+$nightly" --version >/dev/null 2>&1; then
    echo "skipped: no $nightly toolchain (rustup toolchain install nightly)"
    exit 0
  fi
}

# Whether the nightly toolchain has a component.
has_component() {
  rustup component list --toolchain "$nightly" 2>/dev/null | grep -q "^$1.*(installed)"
}
