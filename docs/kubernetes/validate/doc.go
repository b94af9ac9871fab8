// Package validate checks the manifests of docs/kubernetes in its tests. It is a module of its own so that Medusa does not
// depend on Kubernetes.
package validate
