//! What of a result is run, or obeyed, by somebody who does no more than open the repository: by an
//! editor, a shell, an agent, a hook or a build. No I/O.

use crate::executor::run::path_pattern::FoldedPath;

/// Who reads files by themselves, and patterns of these files, with spaces in between.
struct Opener {
    who: &'static str,
    files: &'static str,
}

/// Files that name commands, or settings that lead to some. What is run only when somebody builds
/// or tests is not among them, unless editors do that on their own.
const OPENERS: &[Opener] = &[
    Opener {
        who: "coding agents",
        files: "\
            .claude .mcp.json claude.md claude.local.md .cursor .cursorrules .codex agents.md \
            agents.override.md .gemini gemini.md .github/copilot-instructions.md \
            .github/instructions .github/prompts .github/agents .github/chatmodes .github/hooks \
            .windsurf .windsurfrules .clinerules .roo .roomodes .roorules .kiro .aider* .continue \
            .junie .opencode opencode.json* .amazonq .qwen qwen.md .crush* crush.json .goosehints \
            .augment .trae .rules .agents .agent agent.md warp.md crush.md conventions.md \
            .continuerc.json .augment-guidelines .openhands* .factory",
    },
    Opener {
        who: "editors",
        files: "\
            .vscode *.code-workspace .idea .run .fleet *.iml .zed .vs .nova .helix .theia \
            .externaltoolbuilders *.sublime-project .vimrc .exrc .nvimrc \
            .nvim.lua .lvimrc .local.vimrc .vim .dir-locals*.el .projectile .kateproject \
            .luarc.json* .bsp .metals .factorypath .venv",
    },
    Opener {
        who: "linters that editors start",
        files: "\
            tailwind.config.* vite.config.* vitest.config.* jest.config.* .babelrc* \
            babel.config.* .ycm_extra_conf.py eslint.config.* .eslintrc* \
            prettier.config.* .prettierrc* stylelint.config.* \
            .stylelintrc* .solargraph.yml .ruby-lsp* .formatter.exs node_modules",
    },
    Opener {
        who: "shells that enter a directory",
        files: ".envrc .env.mise .mise* mise.toml mise.*.toml .config/mise .tool-versions .rtx.toml .autoenv*",
    },
    Opener {
        who: "hooks of git",
        files: "\
            .husky .huskyrc* .githooks .pre-commit-config.yaml .pre-commit-hooks.yaml lefthook* \
            .lefthook* .overcommit.yml .lintstagedrc* lint-staged.config.* .gitconfig",
    },
    Opener {
        who: "git, for submodules and LFS",
        files: ".gitmodules .lfsconfig",
    },
    Opener {
        who: "other version control",
        files: ".hg .sl .jj .bzr _darcs .pijul .fslckout _fossil_",
    },
    Opener {
        who: "development containers",
        files: "\
            .devcontainer .devcontainer.json .gitpod* .replit .idx .codesandbox .stackblitzrc \
            .codespaces devbox.json devenv.nix",
    },
    Opener {
        who: "continuous integration",
        files: "\
            .github/workflows .github/actions .github/dependabot.yml .gitlab-ci* .gitlab .circleci \
            .travis.yml azure-pipelines* .azure-pipelines .buildkite .drone.yml .woodpecker* \
            .forgejo .gitea jenkinsfile* bitbucket-pipelines.yml .cirrus* *appveyor.yml .teamcity \
            .semaphore cloudbuild.yaml buildspec.y* .builds .build.yml .zuul* .tekton \
            codemagic.yaml bitrise.yml .packit.y* .readthedocs.y* netlify.toml vercel.json \
            renovate.json* .renovaterc*",
    },
    Opener {
        who: "package managers",
        files: "\
            .npmrc .yarnrc* .yarn .pnp.* .pnpmfile.* pnpmfile.* bunfig.toml .bundle pip.conf \
            nuget.config",
    },
    Opener {
        who: "cargo and rust-analyzer",
        files: "\
            build.rs .cargo/config* rust-toolchain rust-toolchain.toml rust-project.json \
            rust-analyzer.toml .rust-analyzer.toml",
    },
    Opener {
        who: "builds that editors start",
        files: "\
            .bazelrc .bazelversion .bazelproject tools/bazel .buckconfig .mvn mvnw* gradlew* \
            gradle/wrapper *.gradle *.gradle.kts directory.*.props directory.*.targets pom.xml \
            *.sbt .sbtopts .jvmopts mix.exs package.swift *.xcodeproj *.csproj hie.yaml \
            cmakelists.txt cmakepresets.json cmakeuserpresets.json build.zig *.nimble *.nims \
            *.cabal cabal.project* setup.hs stack.yaml lakefile.* lean-toolchain",
    },
    Opener {
        who: "every start of Python",
        files: "sitecustomize.py usercustomize.py *.pth pyvenv.cfg __pycache__ *.pyc *.pyo",
    },
    Opener {
        who: "debuggers and interpreters",
        files: "\
            .gdbinit .lldbinit .irbrc .pryrc .rprofile .renviron .iex.exs .ghci .ocamlinit \
            .rdata .octaverc startup.m .pdbrc .byebugrc jupyter_*",
    },
    Opener {
        who: "file managers",
        files: "*.desktop .directory autorun.inf desktop.ini *.lnk *.url *.scf *.library-ms",
    },
];

/// Who reads a path without being asked. None if nobody does.
pub fn opener(path: &str) -> Option<&'static str> {
    let folded = FoldedPath::new(path);
    let reads = |opener: &&Opener| {
        let mut files = opener.files.split(' ');
        files.any(|pattern| folded.is_named_by(pattern))
    };
    OPENERS.iter().find(reads).map(|opener| opener.who)
}

/// Whether a path is where git reads attributes.
pub fn holds_attributes(path: &str) -> bool {
    FoldedPath::new(path).is_named_by(".gitattributes")
}

/// Drivers of git's own for differences, which run nothing (gitattributes(5)).
const OWN_DRIVERS: &str = "\
    ada bash bibtex cpp csharp css default dts elixir fortran fountain golang html ini java kotlin \
    markdown matlab objc pascal perl php python r ruby rust scheme tex";

/// What attributes of git's do to somebody who checks files out, if that is more than their line
/// ends: a program converts, merges or compares them, by the name that the user's configuration has
/// for it, or their text becomes another than the patch shows.
pub fn effect_of(attributes: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(attributes);
    let lines = text
        .lines()
        // As git sees blanks: a name may begin with what others take for one.
        .filter(|line| !line.trim_start_matches([' ', '\t']).starts_with('#'));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let has = |name: &str| words.iter().any(|word| word.starts_with(name));
    let drivers = words.iter().filter_map(|word| word.strip_prefix("diff="));
    let mut drivers = drivers.filter(|driver| !OWN_DRIVERS.split(' ').any(|own| own == *driver));
    if has("filter=") || has("merge=") || drivers.next().is_some() {
        return Some("filters of git");
    }
    let other_text = "git, which checks out other text than the patch shows";
    has("working-tree-encoding=").then_some(other_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_when_it_is_opened_is_known() {
        for (path, who) in [
            (".claude/settings.json", "coding agents"),
            ("sub/.CLAUDE/settings.json", "coding agents"),
            (".cl\u{200D}aude/settings.json", "coding agents"),
            ("CLAUDE.md", "coding agents"),
            ("docs/AGENTS.md", "coding agents"),
            (".mcp.json", "coding agents"),
            (".vscode/tasks.json", "editors"),
            (".vscode", "editors"),
            (".idea/workspace.xml", "editors"),
            (".nvim.lua", "editors"),
            (".dir-locals.el", "editors"),
            (".envrc", "shells that enter a directory"),
            (".config/mise/config.toml", "shells that enter a directory"),
            (".husky/pre-commit", "hooks of git"),
            ("lefthook.yml", "hooks of git"),
            (".gitmodules", "git, for submodules and LFS"),
            (".devcontainer/devcontainer.json", "development containers"),
            (".github/workflows/x.yml", "continuous integration"),
            (".npmrc", "package managers"),
            (".yarnrc.yml", "package managers"),
            (".cargo/config.toml", "cargo and rust-analyzer"),
            ("crates/x/build.rs", "cargo and rust-analyzer"),
            (".bazelrc", "builds that editors start"),
            ("project/plugins.sbt", "builds that editors start"),
            (".jj/repo/config.toml", "other version control"),
            (".bsp/x.json", "editors"),
            (
                "web/node_modules/prettier/index.js",
                "linters that editors start",
            ),
            ("sitecustomize.py", "every start of Python"),
        ] {
            assert_eq!(opener(path), Some(who), "{path:?}");
        }
        for path in [
            "src/main.rs",
            ".github/CODEOWNERS",
            "docs/claude.markdown",
            "vscode/x",
            ".gitignore",
            "tests/test_a.py",
        ] {
            assert_eq!(opener(path), None, "{path:?}");
        }
    }

    #[test]
    fn attributes_matter_where_they_change_more_than_line_ends() {
        let (filters, text) = (Some("filters"), Some("git, which"));
        for (attributes, told) in [
            ("*.rs text eol=lf\n", None),
            ("# *.bin filter=lfs\n", None),
            ("\u{a0}#* filter=lfs\n", filters),
            ("*.bin filter=lfs -text\n", filters),
            ("[attr]x merge=mine\n", filters),
            ("*.py diff=python\n", None),
            ("*.py diff=word\n", filters),
            ("a.txt text working-tree-encoding=UTF-16BE\n", text),
        ] {
            let effect = effect_of(attributes.as_bytes());
            let is_told = effect
                .zip(told)
                .map(|(effect, told)| effect.starts_with(told));
            assert_eq!(is_told.is_some(), told.is_some(), "{attributes}");
            assert!(is_told.unwrap_or(effect.is_none()), "{attributes}");
        }
    }

    #[test]
    fn patterns_are_in_small_letters() {
        for pattern in OPENERS.iter().flat_map(|opener| opener.files.split(' ')) {
            assert!(!pattern.is_empty());
            assert_eq!(pattern.to_lowercase(), pattern);
        }
    }
}
