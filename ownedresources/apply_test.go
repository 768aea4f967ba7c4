package ownedresources

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/record"
)

func TestApplyCreatesOnce(t *testing.T) {
	w := newServerEnv(t)
	for _, want := range []client.Object{w.deployment(), w.service()} {
		live := w.expect(t, want, apply.Created, "POST "+resourceOf(want))
		require.True(t, metav1.IsControlledBy(live, w.owner))
	}
	for range 3 {
		w.expect(t, w.deployment(), apply.Unchanged, none...)
		w.expect(t, w.service(), apply.Unchanged, none...)
	}
	w.applier = apply.New() // a restart
	w.expect(t, w.deployment(), apply.Unchanged, none...)
	w.expect(t, w.service(), apply.Unchanged, none...)
}

func TestApplyTriesAllObjects(t *testing.T) {
	w := newServerEnv(t)
	theirs := w.deployment()
	require.NoError(t, w.other.Create(t.Context(), theirs))
	results, err := Apply(t.Context(), w.client, w.owner, w.deployment(), w.service())
	var owned *owned.OwnershipError
	require.ErrorAs(t, err, &owned)
	require.Nil(t, results[0].Object)
	require.Equal(t, apply.Created, results[1].Operation)
	require.NotEmpty(t, results[1].Object.(*corev1.Service).Spec.ClusterIP)
}

func TestApplyRepairsDrift(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*appsv1.Deployment)
		op     apply.Operation
		left   func(*appsv1.Deployment) bool // what must hold afterwards
	}{
		"OurValueChanged": {
			reason: "One write repairs a value that is ours.",
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" },
			op:     apply.Applied,
			left:   func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == "nginx:1.28" },
		},
		"OurItemRemoved": {
			reason: "An item of ours that was removed from a keyed list is added again.",
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env = nil },
			op:     apply.Applied,
			left:   func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers[0].Env) == 1 },
		},
		"OurAnnotationRemoved": {
			reason: "Without the annotation it is unknown what was last sent.",
			change: func(d *appsv1.Deployment) { delete(d.Annotations, record.Applied) },
			op:     apply.Applied,
			left:   func(d *appsv1.Deployment) bool { return d.Annotations[record.Applied] != "" },
		},
		"OurReferenceChanged": {
			reason: "The deletion of the owner must wait for its children where that was asked for.",
			change: func(d *appsv1.Deployment) { d.OwnerReferences[0].BlockOwnerDeletion = new(false) },
			op:     apply.Applied,
			left:   func(d *appsv1.Deployment) bool { return *d.OwnerReferences[0].BlockOwnerDeletion },
		},
		"RestartedByKubectl": {
			reason: "An annotation of another writer on the pod template stays.",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
			},
			op: apply.Unchanged,
			left: func(d *appsv1.Deployment) bool {
				return d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "now"
			},
		},
		"SidecarInjected": {
			reason: "An injected container belongs to another writer.",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
			},
			op:   apply.Unchanged,
			left: func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers) == 2 },
		},
		"LabelAdded": {
			reason: "Labels are shared with other writers.",
			change: func(d *appsv1.Deployment) { d.Labels["team"] = "red" },
			op:     apply.Unchanged,
			left:   func(d *appsv1.Deployment) bool { return d.Labels["team"] == "red" },
		},
		"FinalizerAdded": {
			reason: "Finalizers are shared with other writers.",
			change: func(d *appsv1.Deployment) { d.Finalizers = append(d.Finalizers, "example.com/hold") },
			op:     apply.Unchanged,
			left:   func(d *appsv1.Deployment) bool { return slices.Contains(d.Finalizers, "example.com/hold") },
		},
		"DefaultedValueChanged": {
			reason: "A field that is not desired may be changed.",
			change: func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(3)) },
			op:     apply.Unchanged,
			left:   func(d *appsv1.Deployment) bool { return *d.Spec.RevisionHistoryLimit == 3 },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newServerEnv(t)
			w.expect(t, w.deployment(), apply.Created, "POST deployments")
			want := w.deployment()
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
			w.expect(t, want, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
			live := &appsv1.Deployment{}
			byHand(t, w, live, tc.change)

			result, err := w.apply(t, want)
			require.NoError(t, err)
			require.Equal(t, tc.op, result.Operation, tc.reason)
			w.live(t, live)
			require.True(t, tc.left(live), tc.reason)

			version := live.ResourceVersion
			w.expect(t, want, apply.Unchanged, none...)
			w.live(t, live)
			require.Equal(t, version, live.ResourceVersion, "the next pass writes nothing")
		})
	}
}

// blind is a client whose cache shows nothing. Unstructured reads go past a manager's cache.
type blind struct{ client.Client }

func (b blind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, live := obj.(interface{ UnstructuredContent() map[string]any }); live {
		return b.Client.Get(ctx, key, obj, opts...)
	}
	return apierrors.NewNotFound(appsv1.Resource("deployments"), key.Name)
}

func TestApplyOfAnObjectThatTheCacheDoesNotShow(t *testing.T) {
	w := newServerEnv(t)
	seeing := w.client
	w.client = blind{seeing}
	_, err := w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, []string{"POST deployments"}, w.sent.Sent())

	_, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Empty(t, w.sent.Sent(), "it is remembered until the cache shows it")

	w.applier = apply.New()
	_, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, []string{"POST deployments", "GET deployments"}, w.sent.Sent(), "after a restart it is found past the cache")

	w.applier = apply.New()
	w.applier.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(2 * apply.MaxCacheDelay))
	_, err = w.apply(t, w.deployment())
	var hidden *owned.NotCachedError
	require.ErrorAs(t, err, &hidden, "a cache that is behind for that long will never show it")
	require.Equal(t, "NotInCache", hidden.Reason())
}

func TestApplyOfAnObjectThatExistsAndThenIsGone(t *testing.T) {
	w := newServerEnv(t)
	d, err := w.applier.Desire(ownerOf(t, w), w.service(), &owned.Options{})
	require.NoError(t, err)
	d.Object.SetNamespace(w.namespace)
	exists := errors.New("already exists")
	_, err = w.applier.UpdateUnseen(t.Context(), d, exists)
	require.ErrorIs(t, err, exists, "a lost race: the next pass creates it")
}
