package servedkinds

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// While the watch is forbidden, nothing is known of definitions. Later the permission is granted.
func TestDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		_ = metav1.AddMetaToScheme(scheme)
		client := fake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
			ObjectMeta: metav1.ObjectMeta{Name: "monitors.example.com", UID: "1", ResourceVersion: "1"},
		})
		var forbidden atomic.Bool
		var lists atomic.Int32
		forbidden.Store(true)
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			lists.Add(1)
			return forbidden.Load(), nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("injected"))
		})
		changed := make(chan string, 10)
		d := &definitions{client: client, changed: func(group string, _ bool) { changed <- group }}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.run(ctx) }()
		wait(permissionRetry - time.Second)
		assert.EqualValues(t, 1, lists.Load(), "a request that is forbidden is not repeated at once")
		_, known := d.uid("monitors", "example.com")
		assert.False(t, known)

		forbidden.Store(false)
		wait(2 * time.Second)
		assert.Equal(t, "example.com", <-changed)
		uid, known := d.uid("monitors", "example.com")
		assert.True(t, known)
		assert.EqualValues(t, "1", uid)
		uid, known = d.uid("rules", "example.com")
		assert.True(t, known)
		assert.Empty(t, uid)
		stop()
		<-done
		_, known = d.uid("monitors", "example.com")
		assert.False(t, known)
	})
}
