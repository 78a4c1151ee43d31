#!/usr/bin/env bash
# Checks what is in deploy/ as far as that goes without a cluster: builds, lints, and holds every manifest against Kubernetes'
# schemas. What a tool is missing for is skipped, and said so.
#
#   deploy/check.sh             with the tools on the PATH
#   deploy/check.sh --install   builds those that are missing from their Go modules, below target/ci (minutes the first time)
#
# KUBERNETES=v1.34.0 names the schemas.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${CARGO_TARGET_DIR:-target}/ci
mkdir -p "$work/bin"
work=$(cd "$work" && pwd)
export PATH="$work/bin:$PATH"
kubernetes=${KUBERNETES:-v1.34.0}
passed=0 skipped=0

say() { printf '%s\n' "── $*"; }
pass() { passed=$((passed + 1)); }
skip() { skipped=$((skipped + 1)) && say "SKIPPED: $*"; }
have() { command -v "$1" >/dev/null; }

if [ "${1:-}" = --install ]; then
    if have go; then
        install() { have "$1" || { say "building $1" && GOBIN="$work/bin" go install "$2"; }; }
        install kustomize sigs.k8s.io/kustomize/kustomize/v5@v5.6.0
        install kubeconform github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
        install helm helm.sh/helm/v3/cmd/helm@v3.21.4
    else
        say "go is missing: nothing is installed"
    fi
    ls "$work/schemas/$kubernetes" >/dev/null 2>&1 || {
        say "fetching Kubernetes' schemas"
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work/wheels" kubernetes-validate==1.37.0
        python3 deploy/schemas.py "$work"/wheels/kubernetes_validate-1.37.0-*.whl "$kubernetes" "$work/schemas/$kubernetes"
    }
fi

# Holds manifests against the schemas, which know no unknown fields.
valid() {
    if ! have kubeconform; then
        skip "schemas of $1: kubeconform is missing"
    elif ! [ -d "$work/schemas/$kubernetes" ]; then
        skip "schemas of $1: $work/schemas/$kubernetes is missing"
    else
        kubeconform -strict -summary -schema-location "$work/schemas/$kubernetes/{{.ResourceKind}}{{.KindSuffix}}.json" "$1"
        pass
    fi
}

# Kind and name of each object, sorted; generated names without their hash.
objects() { awk '/^kind:/ { kind = $2 } /^  name:/ { print kind, $2 }' "$1" | sed -E 's/^(ConfigMap .*)-[0-9a-z]{10}$/\1/' | sort; }

manifests=$(mktemp -d)
trap 'rm -rf "$manifests"' EXIT

say "the Dockerfile knows every crate"
for crate in $(sed -n 's/^members = \[\(.*\)\]/\1/p' Cargo.toml | tr -d '",'); do
    grep -q "^COPY $crate/Cargo.toml $crate/" deploy/Dockerfile || { echo "deploy/Dockerfile lacks the crate $crate" >&2 && exit 1; }
done
pass

build=
if have kustomize; then build="kustomize build"; elif have kubectl; then build="kubectl kustomize"; fi
if [ -z "$build" ]; then
    skip "kustomize: neither kustomize nor kubectl is there"
else
    for folder in deploy/kustomize/dev deploy/kustomize/prod deploy/kustomize/prod-secure benches/ghz/kubernetes; do
        say "$build $folder"
        $build "$folder" >"$manifests/$(basename "$folder").yaml"
        pass
        valid "$manifests/$(basename "$folder").yaml"
    done
fi

chart=deploy/helm/antiphon
if ! have helm; then
    skip "the chart: helm is missing"
else
    for values in "$chart"/ci/*-values.yaml; do
        say "helm, $values"
        helm lint --strict --quiet "$chart" --values "$values"
        helm template antiphon "$chart" --namespace antiphon --kube-version "$kubernetes" --values "$values" >"$manifests/helm.yaml"
        pass
        valid "$manifests/helm.yaml"
        if [ -n "$build" ] && [[ $values == */cluster-values.yaml ]]; then
            say "the chart makes the same objects as the overlay prod"
            diff <(objects "$manifests/prod.yaml") <(objects "$manifests/helm.yaml")
            pass
        fi
    done
    say "helm refuses a cluster without a store"
    if helm template antiphon "$chart" --kube-version "$kubernetes" >/dev/null 2>"$manifests/refused"; then
        echo "it was accepted" >&2 && exit 1
    fi
    grep -q 'store.url must be set' "$manifests/refused"
    pass
fi

compose=
if docker compose version >/dev/null 2>&1; then compose="docker compose"; elif have docker-compose; then compose=docker-compose; fi
if [ -z "$compose" ]; then
    skip "the compose file: neither docker compose nor docker-compose is there"
else
    say "$compose config"
    $compose -f deploy/compose/compose.yaml config --quiet
    pass
fi

if ! have systemd-analyze; then
    skip "the systemd unit: systemd-analyze is missing"
else
    say "systemd-analyze verify"
    # The binary need not be installed here.
    sed 's|/usr/local/bin/antiphon|/bin/true|' deploy/systemd/antiphon.service >"$manifests/antiphon.service"
    systemd-analyze verify --man=no "$manifests/antiphon.service"
    pass
fi

if ! have promtool; then
    skip "alert rules and the dashboard: promtool is missing (Debian's package prometheus)"
else
    say "promtool, rules, their tests, and the dashboard's queries"
    promtool check config deploy/observe/prometheus.yml
    promtool test rules deploy/observe/alerts_test.yml
    deploy/observe/dashboard.py deploy/observe/grafana/antiphon.json >"$manifests/dashboard.yml"
    promtool check rules "$manifests/dashboard.yml"
    pass
fi
# Every metric asked for is one that docs/metrics.md lists.
if [ -f docs/metrics.md ]; then
    for metric in $(grep -ohE '(antiphon|process)_[a-z_]+' deploy/observe/alerts.yml deploy/observe/grafana/antiphon.json |
        sed -E 's/_(bucket|count|sum)$//' | sort -u); do
        grep -q "\`$metric\`" docs/metrics.md || { echo "docs/metrics.md does not know $metric" >&2 && exit 1; }
    done
    pass
fi

say "scripts"
bash -n deploy/check.sh deploy/compose/drill.sh
for script in deploy/*.py deploy/*/*.py benches/ghz/*.py; do
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$script"
done
pass
say "deploy: $passed checks passed, $skipped skipped"
