package reconciletest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// The server refuses what a real one would refuse. The fake client of controller-runtime stores this Deployment.
func ExampleNewClient() {
	t := new(testing.T) // in a test it is the function's own
	c := reconciletest.NewClient(t, clientgoscheme.Scheme)
	err := c.Create(context.Background(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	fmt.Println(apierrors.IsInvalid(err))
	// Output: true
}

// A scenario gives servers a certificate for an hour.
func ExampleTLSSecret() {
	certificate := reconciletest.TLSSecret(types.NamespacedName{Namespace: "default", Name: "web-tls"}, time.Hour, "web.default.svc")
	actions := []reconciletest.Action{reconciletest.Create(certificate), reconciletest.Wait(2 * time.Hour)} // it has expired
	fmt.Println(len(actions), certificate.Type)
	// Output: 2 kubernetes.io/tls
}
