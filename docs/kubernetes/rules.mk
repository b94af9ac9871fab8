# The manifests of docs/kubernetes against the published types and schemas (docs/kubernetes/README.md).
.PHONY: test-kubernetes
test-kubernetes:
	cd docs/kubernetes/validate && $(GO) vet ./... && $(GO) test ./...
