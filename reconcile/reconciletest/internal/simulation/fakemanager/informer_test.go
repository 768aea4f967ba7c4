package fakemanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/cacheselection"
)

// As with a real informer, the old object of an update is the new object of the previous event, and a transform function is called once for
// each version.
func TestInformerShowsEachVersionOnce(t *testing.T) {
	transformed := 0
	i := &informer{cache: &Cache{}, shown: map[client.ObjectKey]shownObject{}, kind: &kind{selection: cacheselection.Selection{Transform: func(obj any) (any, error) {
		transformed++
		return obj, nil
	}}}}
	var events [][2]any
	h := registeredHandler{i, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { events = append(events, [2]any{nil, obj}) },
		UpdateFunc: func(old, obj any) { events = append(events, [2]any{old, obj}) },
		DeleteFunc: func(obj any) { events = append(events, [2]any{obj, nil}) },
	}}
	version := func(version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: version}}
	}
	one, two := version("1"), version("2")
	require.NoError(t, h.handle(nil, one))
	require.NoError(t, h.handle(one, two))
	require.NoError(t, h.handle(two, nil))
	require.Len(t, events, 3)
	require.Same(t, events[0][1], events[1][0])
	require.Same(t, events[1][1], events[2][0])
	require.Equal(t, "2", events[2][0].(client.Object).GetResourceVersion())
	require.NotSame(t, one, events[0][1], "the server's object is never handed out")
	require.Equal(t, 2, transformed)
}
