// Package controlplane starts a real Kubernetes control plane on this machine, for tests: etcd and kube-apiserver with
// RBAC and admission, and on request kube-controller-manager, kube-scheduler and simulated nodes. It starts in seconds,
// and no container runs. It needs Linux or macOS.
//
//	var controlPlane = controlplane.Shared(controlplane.Options{Controllers: true, CRDs: []string{"../config/crd/bases"}})
//
//	func TestShop(t *testing.T) {
//		cp := controlPlane(t)
//		namespace := controlplane.Namespace(t, cp)
//		c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
//		...
//	}
//
// All tests of a package usually share one, by [Shared]. [New] starts one for a single test, such as a test that restarts
// the API server. [Start] starts one outside of tests. The command github.com/opblocks/opblocks/cmd/controlplane starts
// one for a shell. Under -short tests that need a control plane are skipped.
//
// # What runs
//
// [Start] starts etcd and kube-apiserver with RBAC. [Options.Controllers] adds kube-controller-manager, kube-scheduler and
// kwok, which simulates nodes: Deployments roll out, pods become Ready, Jobs complete, volume claims are bound, owned
// objects are collected as garbage. No container runs. A pod with an image from the registry "registry.invalid" reports
// ImagePullBackOff for ever. A pod with the [HoldAnnotation] stays Pending. A pod status that a test writes stays. A
// Service gets an address, but nothing routes its traffic. [ControlPlane.PauseControllers] shows what an operator does while
// controllers are slow.
//
// # Where the programs come from
//
// The programs are built from the Go modules of Kubernetes, etcd and kwok when they are first needed, and kept in the
// user's cache, see [Build]. `go test` shows the progress of a build only when it has ended, if packages are named, and
// ends a test after 10 minutes. So build the programs before, on a new machine or in CI:
//
//	go run github.com/opblocks/opblocks/cmd/controlplane build
//
// The folder is fit for envtest. If the folder KUBEBUILDER_ASSETS has programs of the same minor version, such as the
// programs of setup-envtest, these run instead, and only the missing ones are built.
//
// # What is left behind
//
// Nothing. The programs run under package supervisor: no process and no file of a control plane outlives the program that
// started it, however that ends, unless it calls [ControlPlane.Detach].
package controlplane
