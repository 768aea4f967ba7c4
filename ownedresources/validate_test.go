package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestInvalidCalls(t *testing.T) {
	w := newWorld(t)
	noUID := w.owner.DeepCopy()
	noUID.UID = ""
	elsewhere := w.deployment()
	elsewhere.Namespace = "kube-system"
	nameless := w.deployment()
	nameless.Name = ""
	var missing *appsv1.Deployment
	nowhere := w.deployment()
	nowhere.Namespace = ""
	cluster := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u"}}
	tests := map[string]struct {
		owner  client.Object
		wanted []client.Object
		says   string
	}{
		"owner without UID": {noUID, []client.Object{w.deployment()}, "has no UID"},
		"no owner":          {nil, []client.Object{w.deployment()}, "owner is nil"},
		"nil":               {w.owner, []client.Object{nil}, "it is nil"},
		"typed nil":         {w.owner, []client.Object{missing}, "it is nil"},
		"no name":           {w.owner, []client.Object{nameless}, "has no name"},
		"twice":             {w.owner, []client.Object{w.deployment(), w.service(), w.deployment()}, "wanted twice"},
		"other namespace":   {w.owner, []client.Object{elsewhere}, "another namespace"},
		"cluster-scoped": {w.owner, []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}},
			"is cluster-scoped"},
		"no namespace": {cluster, []client.Object{nowhere}, "has no namespace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w.count.Sent()
			_, err := Apply(t.Context(), w.client, tc.owner, tc.wanted...)
			require.ErrorContains(t, err, tc.says)
			require.Empty(t, w.count.Sent(), "nothing may be sent")
		})
	}
}
