#!/bin/bash
set -euxo pipefail
export LIBCLANG_PATH="${BUILD_PREFIX}/lib"
cargo-bundle-licenses --format yaml --output THIRDPARTY.yml
cargo install --locked --no-track --path cli --root "${PREFIX}"
"${PREFIX}/bin/genuma" man "${PREFIX}/share/man/man1"
mkdir -p "${PREFIX}"/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
"${PREFIX}/bin/genuma" completions bash > "${PREFIX}/share/bash-completion/completions/genuma"
"${PREFIX}/bin/genuma" completions zsh > "${PREFIX}/share/zsh/site-functions/_genuma"
"${PREFIX}/bin/genuma" completions fish > "${PREFIX}/share/fish/vendor_completions.d/genuma.fish"
