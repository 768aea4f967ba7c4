package controlplane_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// Outside of tests, such as in a demo, a program starts a control plane and stops it.
func ExampleStart() {
	ctx := context.Background()
	cp, err := controlplane.Start(ctx, controlplane.Options{Controllers: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			fmt.Println(err)
		}
	}()

	for _, args := range [][]string{
		{"create", "deployment", "web", "--image=web", "--replicas=2"},
		{"rollout", "status", "deployment/web", "--timeout=5m"},
		{"get", "deployment/web", "--output=jsonpath={.status.readyReplicas}"},
	} {
		output, err := cp.Kubectl(ctx, args...)
		if err != nil {
			fmt.Println(err)
			return
		}
		if args[0] == "get" {
			fmt.Println("ready replicas:", output)
		}
	}
	// Output:
	// ready replicas: 2
}

// The tests of a package share a control plane. Each works in a namespace of its own.
func ExampleShared() {
	// A variable of the package, and a test.
	controlPlane := controlplane.Shared(controlplane.Options{Controllers: true, CRDs: []string{"../config/crd/bases"}})
	testShop := func(t *testing.T) {
		cp := controlPlane(t)
		namespace := controlplane.Namespace(t, cp)
		c, err := client.New(cp.Config(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}}
		if err := c.Create(t.Context(), settings); err != nil {
			t.Error(err)
		}
	}
	_ = testShop
}

// A test that restarts the API server needs a control plane of its own.
func ExampleNew() {
	testReconnect := func(t *testing.T) {
		cp := controlplane.New(t, controlplane.Options{})
		if err := cp.RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_ = testReconnect
}

// envtest runs the programs that this package builds: setup-envtest is not needed.
func ExampleBuild() {
	assets, err := controlplane.Build(context.Background(), controlplane.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	environment := &envtest.Environment{BinaryAssetsDirectory: assets}
	if _, err := environment.Start(); err != nil {
		fmt.Println(err)
		return
	}
	if err := environment.Stop(); err != nil {
		fmt.Println(err)
	}
}

// With the rights of an operator's ServiceAccount, a client shows which rights are missing.
func ExampleControlPlane_ServiceAccountConfig() {
	ctx := context.Background()
	cp := shared(&testing.T{}) // in a test: controlPlane(t), see the example of Shared
	if _, err := cp.Kubectl(ctx, "create", "serviceaccount", "shop-operator"); err != nil {
		fmt.Println(err)
		return
	}
	config, err := cp.ServiceAccountConfig(ctx, "default", "shop-operator")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = c.List(ctx, &corev1.SecretList{}, client.InNamespace("default"))
	fmt.Println(apierrors.IsForbidden(err))
	// Output:
	// true
}

// The config of any user can become a kubeconfig file.
func ExampleMarshalKubeconfig() {
	config := &rest.Config{Host: "https://127.0.0.1:6443", BearerToken: "token"}
	config.Impersonate.UserName = "jane"
	content, err := controlplane.MarshalKubeconfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(content))
	// Output:
	// apiVersion: v1
	// clusters:
	// - cluster:
	//     server: https://127.0.0.1:6443
	//   name: opblocks
	// contexts:
	// - context:
	//     cluster: opblocks
	//     user: opblocks
	//   name: opblocks
	// current-context: opblocks
	// kind: Config
	// users:
	// - name: opblocks
	//   user:
	//     as: jane
	//     token: token
}
