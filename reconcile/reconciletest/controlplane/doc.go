// Package controlplane starts a real Kubernetes control plane on this machine, for tests.
//
// [Start] starts etcd and kube-apiserver with RBAC. [WithControllers] adds kube-controller-manager, kube-scheduler and
// kwok, which simulates nodes: Deployments roll out, pods become Ready, Jobs complete, volume claims are bound, owned
// objects are collected as garbage. No container runs. A pod with an image from the registry "registry.invalid" reports
// ImagePullBackOff for ever. A pod with the [HoldAnnotation] stays Pending. A pod status that a test writes stays.
//
// Package programs builds the programs on first use. They run under package supervisor: no process and no file of a
// control plane outlives the program that started it, unless that calls [ControlPlane.Detach].
//
// Tests use package controlplane.
package controlplane
