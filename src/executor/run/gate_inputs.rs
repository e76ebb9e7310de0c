//! What decides a gate beside the code that it tests: the files that its command names, and those
//! that the programs of the command read before anything else. No I/O.

use crate::executor::run::command_words::{Named, start_dirs, words};
use crate::executor::run::gates::Gate;
use crate::executor::run::hiding::{hides, hides_directory};
use crate::executor::run::path_pattern::{FoldedPath, PathGlob};
use crate::executor::run::result::FileChange;
use crate::executor::run::run_when_opened::holds_attributes;
use crate::executor::run::scope;

/// Programs, and patterns of the files that they read by themselves, with spaces in between.
struct ProgramInputs {
    programs: &'static str,
    files: &'static str,
}

/// What is read without being named: settings, and what a program keeps of earlier runs, by which
/// it takes for done what it never did. A program is known by its name without a version.
const INPUTS: &[ProgramInputs] = &[
    ProgramInputs {
        programs: "\
            python pypy pytest pytest- py.test py.test- tox nox uv uvx poetry pdm hatch pipenv \
            coverage nosetests nose green ward rye behave invoke doit ruff mypy flake8 pylint",
        files: "\
            conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini tox.toml \
            setup.cfg setup.py pyproject.toml noxfile.py sitecustomize.py usercustomize.py \
            *.pth pyvenv.cfg .coveragerc uv.toml ruff.toml .ruff.toml mypy.ini .mypy.ini \
            .flake8 .pylintrc pylintrc *.pyc *.pyo __pycache__ *.dist-info *.egg-info .noserc \
            nose.cfg uv.lock environment.py dodo.py tasks.py .venv .tox .nox __pypackages__ \
            .mypy_cache .ruff_cache .pytest_cache .doit.db*",
    },
    ProgramInputs {
        programs: "make gmake bmake mingw32-make",
        files: "gnumakefile bsdmakefile makefile makefile.* *.mk *.mak *.make *.makefile",
    },
    ProgramInputs {
        programs: "cargo cross rustc clippy-driver",
        files: "\
            cargo.toml cargo.lock build.rs .cargo rust-toolchain rust-toolchain.toml \
            .config/nextest.toml clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml \
            /target target/debug target/release",
    },
    ProgramInputs {
        programs: "go gotestsum",
        files: "go.mod go.sum go.work go.work.sum /vendor",
    },
    ProgramInputs {
        programs: "\
            node npm npx pnpm pnpx yarn bun bunx deno jest vitest mocha ava tsx ts-node tsc \
            playwright cypress karma eslint biome",
        files: "\
            package.json package-lock.json pnpm-lock.yaml yarn.lock .npmrc .yarnrc* .yarn \
            .pnp.* .pnpmfile.* pnpm-workspace.yaml node_modules jest.config.* jest.setup.* \
            vitest.* vite.config.* .mocharc* ava.config.* babel.config.* .babelrc* .swcrc \
            tsconfig*.json playwright.config.* cypress.config.* karma.conf.* bunfig.toml \
            deno.json* deno.lock eslint.config.* .eslintrc* biome.json* __mocks__ \
            *.tsbuildinfo .eslintcache",
    },
    ProgramInputs {
        programs: "gradle gradlew mvn mvnw mvnd",
        files: "\
            *.gradle *.gradle.kts gradle.properties gradle gradlew buildsrc pom.xml .mvn mvnw \
            target/classes target/test-classes",
    },
    ProgramInputs {
        programs: "cmake ctest ninja meson",
        files: "\
            cmakelists.txt *.cmake cmakepresets.json cmakeuserpresets.json ctestcustom.* \
            meson.build meson.options meson_options.txt build.ninja cmakecache.txt .ninja_log \
            .ninja_deps meson-private",
    },
    ProgramInputs {
        programs: "bazel bazelisk buck buck2",
        files: "\
            .bazelrc .bazelversion workspace* module.bazel build build.bazel *.bzl \
            tools/bazel .buckconfig buck",
    },
    ProgramInputs {
        programs: "just task rake ruby bundle rspec mix prove",
        files: "\
            justfile .justfile taskfile.* rakefile *.rake gemfile* .bundle .rspec \
            spec_helper.rb rails_helper.rb test_helper.* mix.exs .proverc .task vendor/bundle \
            _build /deps",
    },
    ProgramInputs {
        programs: "dotnet msbuild php phpunit composer swift zig sbt",
        files: "\
            *.csproj *.fsproj *.sln *.slnx directory.*.props directory.*.targets \
            nuget.config global.json *.runsettings phpunit.* composer.json composer.lock \
            package.swift build.zig build.zig.zon build.sbt /project /vendor .build .zig-cache \
            zig-cache obj bin/debug bin/release /target",
    },
    ProgramInputs {
        programs: "scons waf ant lein clj rebar stack cabal nix nix-shell docker earthly mise trunk",
        files: "\
            sconstruct sconscript wscript build.xml project.clj deps.edn rebar.config stack.yaml \
            cabal.project* *.cabal default.nix shell.nix flake.nix dockerfile* compose*.y* \
            docker-compose* earthfile mise.toml .mise* .trunk .sconsign* .lock-waf* .stack-work \
            dist-newstyle",
    },
    ProgramInputs {
        programs: "shellcheck golangci-lint yamllint prettier black nx turbo lerna gulp grunt ng tap",
        files: "\
            .shellcheckrc .golangci.* .yamllint* .prettierrc* .prettierignore pyproject.toml \
            nx.json turbo.json lerna.json gulpfile* gruntfile* angular.json .taprc .nx .turbo \
            .angular",
    },
    ProgramInputs {
        programs: "gdb ghci rscript octave julia nim dart flutter valgrind",
        files: "\
            .gdbinit .ghci .rprofile .octaverc project.toml manifest.toml nim.cfg *.nims \
            dart_test.yaml pubspec.yaml .valgrindrc",
    },
    ProgramInputs {
        programs: "git pre-commit lefthook",
        files: ".gitattributes .gitignore .pre-commit-config.yaml lefthook.* .lefthook.*",
    },
];

/// Programs that run modules of Python's, which are looked for where they start, or beside the
/// script that they start with.
const PYTHON: &str = "python pypy pytest pytest- py.test py.test- coverage nosetests nose";

/// Programs that take a file for what a target of the same name makes, and then make nothing.
const MAKES_FILES: &str = "make gmake bmake mingw32-make rake";

/// Modules that such a program loads from the root before it looks where they really are: Python's
/// own (sys.stdlib_module_names), and those of its test runners.
const PYTHON_MODULES: &str = "\
    _pytest abc argparse ast asyncio atexit base64 bdb binascii bisect builtins bz2 calendar \
    cmath cmd code codecs codeop collections colorsys compileall compression concurrent \
    configparser contextlib contextvars copy copyreg coverage cprofile csv ctypes curses \
    dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip \
    enum errno exceptiongroup faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
    functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac \
    html http imp imaplib importlib iniconfig inspect io ipaddress itertools json keyword \
    linecache locale logging lzma mailbox marshal math mimetypes mmap modulefinder \
    multiprocessing netrc nose ntpath numbers opcode operator optparse os packaging pathlib pdb \
    pickle pickletools pipes pkgutil platform plistlib pluggy poplib posix posixpath pprint \
    profile pstats pty pwd py py_compile pyclbr pydoc pyexpat pygments pytest queue quopri \
    random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve \
    shlex shutil signal site smtplib socket socketserver sqlite3 sre_compile sre_constants \
    sre_parse ssl stat statistics string stringprep struct subprocess symtable sys sysconfig \
    syslog tabnanny tarfile tempfile termios textwrap threading time timeit token tokenize tomli \
    tomllib trace traceback tracemalloc tty types typing unicodedata unittest urllib uuid venv \
    warnings wave weakref webbrowser wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Programs whose plain words are names of commands and targets, and not of files.
const TAKES_TARGETS: &str = "\
    cargo go npm pnpm yarn bun deno make gmake just task rake gradle gradlew mvn mvnw \
    bazel dotnet swift zig sbt mix tox nox git";

/// What decides a gate, as far as its definition tells.
#[derive(Debug)]
pub struct GateInputs<'g> {
    declared: &'g [String],
    /// The same, as paths that are compared.
    files: Vec<FoldedPath>,
    named: Vec<FoldedPath>,
    globs: Vec<PathGlob>,
    patterns: Vec<&'static str>,
    /// A file of a target's name is taken for what the target makes.
    makes_files: bool,
    /// Where the modules of Python's are looked for first.
    module_dirs: Vec<FoldedPath>,
    /// Directories that a module of Python's may hide.
    packages: Vec<FoldedPath>,
}

impl<'g> GateInputs<'g> {
    /// What decides a gate. An argument may be a command line of its own, or hold a path within it.
    pub fn of(gate: &'g Gate) -> Self {
        let mut words: Vec<String> = gate.argv.iter().flat_map(|text| words(text)).collect();
        let programs: Vec<&str> = words.iter().map(|word| program(word)).collect();
        let runs = |names: &str| names.split(' ').any(|name| programs.contains(&name));
        let takes_targets = runs(TAKES_TARGETS);
        let runs_python = runs(PYTHON);
        let makes_files = runs(MAKES_FILES);
        let inputs = INPUTS.iter().filter(|inputs| runs(inputs.programs));
        let patterns = inputs.flat_map(|inputs| inputs.files.split(' ')).collect();
        let is_file = |word: &&String| !takes_targets || word.contains(['/', '.']);
        let dirs = start_dirs(&gate.argv);
        let files_there = words.iter().filter(is_file).filter(|word| *word != ".");
        let below = |word: &String| {
            let words = dirs.iter().map(|dir| [dir, word.as_str()].concat());
            words.collect::<Vec<_>>()
        };
        let further: Vec<String> = files_there.flat_map(below).collect();
        words.extend(further);
        let (mut named, mut globs) = (Vec::new(), Vec::new());
        for what in words.iter().filter(is_file).flat_map(|word| names(word)) {
            match what {
                // The root decides every gate, and is therefore not told.
                Named::Path(path) if path.is_root() => {}
                Named::Path(path) => named.push(path),
                Named::Glob(glob) => globs.push(glob),
            }
        }
        let files = gate.files.iter();
        let files: Vec<FoldedPath> = files
            .filter_map(|file| FoldedPath::of_argument(file))
            .collect();
        let (mut module_dirs, mut packages) = (Vec::new(), Vec::new());
        if runs_python {
            module_dirs = named.iter().map(FoldedPath::parent).collect();
            module_dirs.push(FoldedPath::root());
            // A module of a package is loaded after the package, whatever is found for it.
            let all = named.iter().chain(&files);
            packages = all.flat_map(FoldedPath::dirs_above).collect();
            named.extend(packages.iter().map(FoldedPath::package_file));
        }
        Self {
            declared: &gate.files,
            files,
            patterns,
            named,
            globs,
            makes_files,
            module_dirs,
            packages,
        }
    }

    /// Whether a change is of something among it, by any name. What the attributes of git say
    /// decides what every file of a checkout is.
    pub fn has_changed(&self, change: &FileChange) -> bool {
        let mut names = change.names();
        names.any(|name| self.has(name) || holds_attributes(name))
            || !change.is_file() && self.is_below(&change.path)
            || self.makes_files && (change.may_be_made || self.is_beside(change))
    }

    /// Whether a new file or directory may be one that a target makes, although no makefile of the
    /// tree tells so: it lies where `make` starts and has no ending, as names of targets have none.
    fn is_beside(&self, change: &FileChange) -> bool {
        let new = change.new_dir.as_deref().unwrap_or(&change.path);
        let name = new.rsplit('/').next().unwrap_or_default();
        let dir = FoldedPath::new(new).parent();
        let is_beside = dir.is_root() || self.named.contains(&dir);
        change.status == "A" && !name.contains('.') && is_beside
    }

    /// Whether something of it lies below a path, which is no directory any more.
    fn is_below(&self, path: &str) -> bool {
        let folded = FoldedPath::new(path);
        let mut known = self.named.iter().chain(&self.files);
        known.any(|known| known.lies_in(&folded))
    }

    /// Whether a program loads a path in the place of something of it.
    fn is_hidden_by(&self, path: &FoldedPath) -> bool {
        let mut known = self.named.iter().chain(&self.files);
        known.any(|known| hides(path, known))
            || self.packages.iter().any(|dir| hides_directory(path, dir))
    }

    /// Whether a path is among it.
    fn has(&self, path: &str) -> bool {
        let folded = FoldedPath::new(path);
        scope::covers(self.declared, path)
            || self.named.iter().any(|named| folded.lies_in(named))
            || self.is_hidden_by(&folded)
            || folded
                .without_ending()
                .is_some_and(|path| self.named.contains(&path))
            || self.globs.iter().any(|glob| glob.covers(&folded))
            || self
                .patterns
                .iter()
                .any(|pattern| folded.is_named_by(pattern))
            || self.module_dirs.iter().any(|dir| {
                let entry = folded.entry_of(dir);
                entry.is_some_and(shadows_a_module)
            })
    }
}

/// Whether a file or a directory is found before a module of Python's.
fn shadows_a_module(entry: &str) -> bool {
    let module = entry.split('.').next().unwrap_or_default();
    let is_loaded = entry == module
        || [".py", ".pyc", ".so", ".pyd"]
            .iter()
            .any(|end| entry.ends_with(end));
    is_loaded && PYTHON_MODULES.split(' ').any(|known| known == module)
}

/// The name of a program without its place and its version: `/usr/bin/python3.12` is `python`.
fn program(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.')
}

/// What a word may name: a path or many, and a module of Python's by its file.
fn names(word: &str) -> impl Iterator<Item = Named> {
    let module = (!word.contains('/')).then(|| word.replace('.', "/") + ".py");
    let names = [Some(word.to_owned()), module].into_iter().flatten();
    names.filter_map(|name| Named::by(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::run::counts::Counts;

    fn decides(line: &[&str], path: &str) -> bool {
        GateInputs::of(&gate(line, &[])).has(path)
    }

    fn gate(line: &[&str], files: &[&str]) -> Gate {
        Gate {
            name: "x".into(),
            argv: line.iter().map(|&word| word.to_owned()).collect(),
            timeout_s: 1,
            counts: Counts::Nothing,
            files: files.iter().map(|&file| file.to_owned()).collect(),
            pass_env: Vec::new(),
        }
    }

    #[test]
    fn what_is_loaded_in_the_place_of_a_file_decides_a_gate() {
        for (line, files, path, decided) in [
            (
                &["python3", "main.py"][..],
                &["helper.py"][..],
                "helper/__init__.py",
                true,
            ),
            (&["./run"], &["sub/helper.py"], "sub/helper/x.py", true),
            (&["./run"], &["sub/helper.py"], "helper/x.py", false),
            (&["./run"], &["lib/helper.js"], "lib/helper", true),
            (&["./run"], &["checks"], "checks.py", true),
            (
                &["python3", "-m", "chk.check"],
                &[],
                "chk/check/__main__.py",
                true,
            ),
            (
                &["python3", "-m", "chk.check"],
                &[],
                "chk/check.abi3.so",
                true,
            ),
            (&["python3", "-m", "chk.check"], &[], "chk.abi3.so", true),
            (
                &["python3", "-m", "check"],
                &[],
                "check.cpython-311.so",
                true,
            ),
            (&["python3", "main.py"], &["a/b/c.py"], "a/b.py", true),
            (
                &["python3", "main.py"],
                &["a/b/c.py"],
                "a/__init__.py",
                true,
            ),
            (&["python3", "main.py"], &["a/b/c.py"], "a/b/d.py", false),
        ] {
            let gate = gate(line, files);
            let has = GateInputs::of(&gate).has(path);
            assert_eq!(has, decided, "{line:?} {files:?} {path}");
        }
    }

    #[test]
    fn a_command_is_decided_by_the_files_that_it_names() {
        let shell: &[&str] = &["sh", "-c", "cd x && python3 t.py;exit 1"];
        for (line, path, decided) in [
            (&["./ci/run.sh"][..], "ci/run.sh", true),
            (&["sh", "ci/run.sh"], "CI/run.sh", true),
            (&["sh", "ci/run.sh"], "ci/other.sh", false),
            (shell, "t.py", true),
            (shell, "u.py", false),
            (
                &["pytest", "tests/test_a.py::TestA::test_b"],
                "tests/test_a.py",
                true,
            ),
            (&["pytest", "tests"], "tests/test_new.py", true),
            (
                &["python3", "-m", "unittest", "tests.test_a"],
                "tests/test_a.py",
                true,
            ),
            (&["x", "--config=ci/x.conf"], "ci/x.conf", true),
            (&["pytest", "."], "src/a.py", false),
            (&["cargo", "test"], "test/a.rs", false),
            (&["make", "test"], "test/a.c", false),
            (&["/usr/bin/env", "x"], "usr/bin/env", false),
            (&["sh", "a b.sh"], "a b.sh", true),
            (&["sh", "-c", "sh 'a b.sh'"], "a b.sh", true),
            (&["sh", "-c", "sh a\\ b.sh"], "a b.sh", true),
            (&["sh", "-c", "sh r\"un\".sh"], "run.sh", true),
            (&["sh", "sub/../run.sh"], "run.sh", true),
            (&["sh", "-c", "sh $PWD/run.sh"], "run.sh", true),
            (&["sh", "-c", "sh \"${PWD}\"/run.sh"], "run.sh", true),
            (&["sh", "-c", "`echo sh` `pwd`/run.sh"], "run.sh", true),
            (&["sh", "-c", "sh $DIR/run.sh"], "ci/run.sh", true),
            (
                &["sh", "-c", "for t in tests/*.sh; do sh $t; done"],
                "tests/a.sh",
                true,
            ),
            (
                &["sh", "-c", "for t in tests/*.sh; do sh $t; done"],
                "src/a.sh",
                false,
            ),
            (&["sh", "ru*.sh"], "run.sh", true),
            (&["make", "-fci/x.mak"], "ci/x.mak", true),
            (&["sh", "-c", "cd sub; sh ../ci/run.sh"], "ci/run.sh", true),
            (&["sh", "-c", "A=run;sh $A.sh"], "run.sh", true),
            (&["node", "scripts/t"], "scripts/t.js", true),
            (&["python3", "-m", "unittest"], "unittest.md", false),
            (&["prove", "-Ilib", "t/a.t"], "lib/a.pm", false),
            (&["python3", "-mcheck"], "check.py", true),
            (&["sh", "-c", "cd sub && sh t.sh && make"], "sub/t.sh", true),
            (&["sh", "-c", "cd sub && make test"], "sub/test.c", false),
            (
                &["sh", "-c", "cd sub && cargo test -p ."],
                "sub/a.rs",
                false,
            ),
            (&["sh", "-c", "cd sub && go test ./..."], "sub/a.go", false),
            (
                &["make", "-C", "a", "-C", "b", "-fx.mak"],
                "a/b/x.mak",
                true,
            ),
            (&["make", "--directory=a", "-fx.mak"], "a/x.mak", true),
            (&["env", "PATH=bin:/usr/bin", "make"], "bin/gcc", true),
            (&["sh", "-c", "PATH=bin:$PATH make all"], "bin/gcc", true),
            (&["python3", "-mtools.check"], "tools/check.py", true),
            (&["env", "-Csub", "sh", "t.sh"], "sub/t.sh", true),
            (&["x", "-ocheck.conf"], "check.conf", true),
            (&["bash", "-c", "sh $'a\\x20b.sh'"], "a b.sh", true),
            (&["bash", "-c", "sh ~+/run.sh"], "run.sh", true),
            (&["bash", "-c", "cd x; sh ~-/run.sh"], "ci/run.sh", true),
            (&["sh", "-c", "sh ${X:-run.sh}"], "run.sh", true),
            (&["sh", "-c", "sh ${X-ci/run}"], "ci/run", true),
            (&["python3", "-m", "sub.x.check"], "sub/__init__.py", true),
            (&["python3", "-m", "sub.x.check"], "sub.py", true),
            (
                &["python3", "-c", "import sub.x.check"],
                "sub/x/__init__.pyc",
                true,
            ),
            (&["python3", "-m", "sub.x.check"], "sub/other.py", false),
            (
                &["pytest", "tests/unit/test_a.py"],
                "tests/unit/__init__.py",
                true,
            ),
        ] {
            assert_eq!(decides(line, path), decided, "{line:?} {path}");
        }
    }

    #[test]
    fn a_runner_is_decided_by_what_it_reads_first() {
        for (line, path, decided) in [
            (&["make", "test"][..], "GNUmakefile", true),
            (&["sh", "-c", "timeout 9 make -C sub"], "sub/Makefile", true),
            (&["python3", "-m", "unittest"], "unittest.py", true),
            (&["python3", "-m", "unittest"], "unittest/__init__.py", true),
            (&["python3.12", "-m", "unittest"], "Random.py", true),
            (
                &["python3", "-m", "unittest"],
                "json.cpython-312-x86_64-linux-gnu.so",
                true,
            ),
            (&["python3", "-m", "unittest"], "app/json.py", false),
            (&["python3", "-m", "unittest"], "json.md", false),
            (&["python3", "ci/t.py"], "ci/json.py", true),
            (&["python3", "-m", "unittest"], "sitecustomize.py", true),
            (&["uv", "run", "pytest"], "tests/conftest.py", true),
            (&["pytest"], "pyproject.toml", true),
            (&["pytest"], "src/a.py", false),
            (
                &["python3", "main.py"],
                "lib/__pycache__/a.cpython-311.pyc",
                true,
            ),
            (
                &["python3", "-m", "pytest"],
                "x-1.0.dist-info/entry_points.txt",
                true,
            ),
            (&["pytest-3"], "conftest.py", true),
            (&["cargo", "test"], "crates/x/build.rs", true),
            (&["cargo", "test"], ".cargo/config.toml", true),
            (&["cargo", "test"], "src/lib.rs", false),
            (&["cargo", "test"], "x/target/debug/deps/t-0f", true),
            (&["cargo", "test"], "src/target/mod.rs", false),
            (&["mypy", "."], ".mypy_cache/3.11/a.meta.json", true),
            (&["task", "test"], ".task/checksum/test", true),
            (&["npx", "tsc", "-b"], "web/tsconfig.tsbuildinfo", true),
            (&["go", "test", "./..."], "go.mod", true),
            (&["npx", "vitest", "run"], "vitest.config.ts", true),
            (&["npm", "test"], "package.json", true),
            (
                &["./gradlew", "check"],
                "gradle/wrapper/gradle-wrapper.properties",
                true,
            ),
            (&["true"], "Makefile", false),
        ] {
            assert_eq!(decides(line, path), decided, "{line:?} {path}");
        }
    }

    #[test]
    fn patterns_are_in_small_letters_and_modules_are_words() {
        let patterns = INPUTS.iter().flat_map(|inputs| inputs.files.split(' '));
        for pattern in patterns {
            assert!(!pattern.is_empty());
            assert_eq!(pattern.to_lowercase(), pattern);
        }
        assert!(PYTHON_MODULES.split(' ').all(|module| !module.is_empty()));
    }
}
