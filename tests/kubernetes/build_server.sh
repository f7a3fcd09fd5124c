#!/usr/bin/env bash
# Builds the API server of Kubernetes from Debian's source package into a folder: no distribution has it as a program.
# Four minutes on two cores; what stays is the server alone (110 MB).
#   tests/kubernetes/build_server.sh FOLDER
set -euo pipefail
folder=$(realpath -m "$1")
mkdir -p "$folder/sources" "$folder/lists/partial" "$folder/source"

# apt's own configuration, its lines of binary packages read as lines of sources.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$file" ] || sed -e 's/^Types: deb$/Types: deb-src/' -e 's/^deb /deb-src /' "$file" >"$folder/sources/${file##*/}"
done
options=(-qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$folder/sources" -o "Dir::State::lists=$folder/lists")
cd "$folder/source"
apt-get "${options[@]}" update
apt-get "${options[@]}" source kubernetes

cd kubernetes-1.*/
# The copy of reflect2 in it does not run with the Go that there is; Debian's package of it does.
reflect=vendor/github.com/modern-go/reflect2
rm -f "$reflect"/*.go "$reflect"/*.s
cp /usr/share/gocode/src/github.com/modern-go/reflect2/*.{go,s} "$reflect/"
export PATH=/usr/lib/go-1.19/bin:$PATH CGO_ENABLED=0 GOPATH=$PWD/.go GOPROXY=off GO111MODULE=off
mkdir -p .go/src/k8s.io
ln -sfn ../../.. .go/src/k8s.io/kubernetes
nice -n 15 make WHAT=cmd/kube-apiserver
strip -o "$folder/kube-apiserver.new" _output/local/go/bin/kube-apiserver
mv "$folder/kube-apiserver.new" "$folder/kube-apiserver"
cd "$folder"
rm -rf source sources lists
