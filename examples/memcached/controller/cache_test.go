package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/opblocks/opblocks/examples/memcached/controller"
)

// TestCacheOfPods checks that the cache leaves out the pods of others. A cluster may have tens of thousands.
func TestCacheOfPods(t *testing.T) {
	var pods cache.ByObject
	for obj, options := range controller.Cache("default").ByObject {
		if _, is := obj.(*corev1.Pod); is {
			pods = options
		}
	}
	if assert.NotNil(t, pods.Label) {
		assert.True(t, pods.Label.Matches(labels.Set(pod("ours", pending).Labels)))
		assert.False(t, pods.Label.Matches(labels.Set{"app": "web"}))
	}
}
