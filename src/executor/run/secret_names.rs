//! Which names of files are those of secrets. A result that has one is told. No I/O.

use crate::executor::run::path_pattern::FoldedPath;

/// Where programs keep keys and passwords, with spaces in between.
const SECRETS: &str = "\
    .env .env.* *.env .envrc .netrc _netrc .pgpass .my.cnf .git-credentials .pypirc .npmrc \
    .htpasswd .vault-token .dockercfg .docker/config.json .aws/credentials .kube/config kubeconfig \
    .config/gcloud application_default_credentials.json client_secret*.json service-account*.json \
    service_account*.json credentials.json credentials secrets.y* secrets.json secrets.toml \
    terraform.tfstate* *.tfvars .ssh .gnupg id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk \
    id_ed25519_sk *.pem *.key *.ppk *.p12 *.pfx *.jks *.keystore *.kdbx *.agekey";

/// Names that are made to be shared.
const EXAMPLES: &str = "*.example *.sample *.template *.dist *.defaults *.pub";

/// Whether a path, as a record has it, has the name of a secret.
pub fn looks_secret(path: &str) -> bool {
    let path = FoldedPath::new(path);
    let is_among = |names: &str| names.split_whitespace().any(|name| path.is_named_by(name));
    is_among(SECRETS) && !is_among(EXAMPLES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_name() {
        for path in [
            ".env",
            "a/.env.local",
            "prod.env",
            "x/id_rsa",
            "server.PEM",
            ".aws/credentials",
        ] {
            assert!(looks_secret(path), "{path}");
        }
        for path in [
            ".env.example",
            "src/env.rs",
            "id_rsa.pub",
            "keys/mod.rs",
            "monkey",
        ] {
            assert!(!looks_secret(path), "{path}");
        }
    }
}
