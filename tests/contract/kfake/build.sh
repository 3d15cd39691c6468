#!/bin/sh
# Build the server into a directory for tools: build.sh TOOLS
set -eu
source=$(cd "$(dirname "$0")" && pwd)
tools=$(cd "$1" && pwd)
module=github.com/twmb/franz-go/pkg/kfake

rm -rf "$tools/kfake"
mkdir -p "$tools/kfake" "$tools/bin"
cd "$tools/kfake"
cp "$source/go.mod" "$source/go.sum" "$source/main.go" .
go mod download
cp -r "$(go list -m -f '{{.Dir}}' $module)" patched
chmod -R u+w patched
cp "$source/features.go.txt" patched/features.go
for file in patched/18_api_versions.go patched/57_update_features.go; do
    sed -e 's/vs\.EachSupportedFeature(/eachSupportedFeature(vs, /' \
        -e 's/vs\.EachFinalizedFeature(/eachFinalizedFeature(vs, /' "$file" > changed
    mv changed "$file"
done
go mod edit -replace "$module=./patched"
go build -o "$tools/bin/kfake-server" .
