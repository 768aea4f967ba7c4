package finalizers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	account  = "example.com/account"
	database = "example.com/database"
	theirs   = "others.example.com/theirs"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// counted is controller-runtime's fake client, and how many requests it got.
type counted struct {
	client.WithWatch
	requests int
}

func newFake(objects ...client.Object) *counted {
	c := &counted{}
	c.WithWatch = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			c.requests++
			return next.Patch(ctx, obj, p, o...)
		},
	}).Build()
	return c
}

// user stands for a custom resource, as a ConfigMap.
func user(names ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ann", Finalizers: names}}
}

// deletedUser has been being deleted since noon.
func deletedUser(names ...string) *corev1.ConfigMap {
	u := user(names...)
	u.DeletionTimestamp = &metav1.Time{Time: noon}
	return u
}

// read gives the object as a reconciler would have it.
func read(t *testing.T, c client.Client) *corev1.ConfigMap {
	t.Helper()
	u := &corev1.ConfigMap{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "ann"}, u))
	return u
}

// clock always says the same.
func clock(at time.Time) func() time.Time { return func() time.Time { return at } }
