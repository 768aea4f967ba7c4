package ownedresources

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCreatedOnceThenNothing(t *testing.T) {
	w := newWorld(t)
	for _, want := range []client.Object{w.deployment(), w.service()} {
		live := w.expect(t, want, Created, "POST "+resourceOf(want))
		require.True(t, metav1.IsControlledBy(live, w.owner))
	}
	for range 3 {
		w.expect(t, w.deployment(), Unchanged, none...)
		w.expect(t, w.service(), Unchanged, none...)
	}
	w.applier = newApplier() // a restart
	w.expect(t, w.deployment(), Unchanged, none...)
	w.expect(t, w.service(), Unchanged, none...)
}

func TestFieldDroppedAfterPostGoes(t *testing.T) {
	w := newWorld(t)
	w.expect(t, w.deployment(), Created, "POST deployments")

	want := w.deployment()
	want.Spec.Template.Spec.Containers[0].Env = nil
	w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	var live appsv1.Deployment
	w.live(t, &live)
	require.Empty(t, live.Spec.Template.Spec.Containers[0].Env, "what the POST set is ours to drop")
	for _, entry := range live.ManagedFields {
		require.False(t, entry.Manager == "configmap" && entry.Operation == metav1.ManagedFieldsOperationUpdate,
			"the entry of the POST would hold fields for ever")
	}

	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.expect(t, want, Applied, "PATCH deployments")
	w.expect(t, want, Unchanged, none...)
}

func TestDrift(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*appsv1.Deployment)
		op     Operation
		left   func(*appsv1.Deployment) bool // what must hold afterwards
	}{
		"our value": {
			reason: "what we set is repaired by one write",
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" },
			op:     Applied,
			left:   func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == "nginx:1.28" },
		},
		"our value removed": {
			reason: "a removed item of a keyed list comes back",
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env = nil },
			op:     Applied,
			left:   func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers[0].Env) == 1 },
		},
		"our mark": {
			reason: "without the annotation nobody knows what was last sent",
			change: func(d *appsv1.Deployment) { delete(d.Annotations, AnnotationApplied) },
			op:     Applied,
			left:   func(d *appsv1.Deployment) bool { return d.Annotations[AnnotationApplied] != "" },
		},
		"our reference": {
			reason: "deletion of the owner must wait for its children where that was asked for",
			change: func(d *appsv1.Deployment) { d.OwnerReferences[0].BlockOwnerDeletion = new(false) },
			op:     Applied,
			left:   func(d *appsv1.Deployment) bool { return *d.OwnerReferences[0].BlockOwnerDeletion },
		},
		"restart by kubectl": {
			reason: "an annotation of somebody else on the pods is not ours to take away",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
			},
			op: Unchanged,
			left: func(d *appsv1.Deployment) bool {
				return d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "now"
			},
		},
		"sidecar": {
			reason: "an injected container is somebody else's",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
			},
			op:   Unchanged,
			left: func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers) == 2 },
		},
		"finalizer and label": {
			reason: "metadata is shared",
			change: func(d *appsv1.Deployment) { d.Labels["team"] = "red" },
			op:     Unchanged,
			left:   func(d *appsv1.Deployment) bool { return d.Labels["team"] == "red" },
		},
		"defaulted value": {
			reason: "a field that we do not set may be changed",
			change: func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(3)) },
			op:     Unchanged,
			left:   func(d *appsv1.Deployment) bool { return *d.Spec.RevisionHistoryLimit == 3 },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.expect(t, w.deployment(), Created, "POST deployments")
			want := w.deployment()
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
			w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
			live := &appsv1.Deployment{}
			byHand(t, w, live, tc.change)

			result, err := w.apply(t, want)
			require.NoError(t, err)
			require.Equal(t, tc.op, result.Operation, tc.reason)
			w.live(t, live)
			require.True(t, tc.left(live), tc.reason)

			version := live.ResourceVersion
			w.expect(t, want, Unchanged, none...)
			w.live(t, live)
			require.Equal(t, version, live.ResourceVersion, "the next pass writes nothing")
		})
	}
}

// The key of an item of ours is changed: for server-side apply that is another item.
func TestDriftInTheKeyOfAnItem(t *testing.T) {
	t.Run("service port", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.service(), Created, "POST services")
		var live corev1.Service
		for range 2 {
			byHand(t, w, &live, func(s *corev1.Service) {
				s.Spec.Ports[0].Port = 8080
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "theirs", Port: 9999})
			})
			_, err := w.apply(t, w.service())
			require.NoError(t, err)
			w.live(t, &live)
			require.Len(t, live.Spec.Ports, 2, "what does not clash with ours stays")
			w.expect(t, w.service(), Unchanged, none...)
			byHand(t, w, &live, func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[1:] })
			w.expect(t, w.service(), Unchanged, none...)
		}
		want := w.service()
		want.Spec.Ports = []corev1.ServicePort{{Name: "other", Port: 81}}
		_, err := w.apply(t, want)
		require.NoError(t, err)
		w.live(t, &live)
		require.Len(t, live.Spec.Ports, 1, "what was put in its place is ours, and goes when it is not wanted")
		w.expect(t, want, Unchanged, none...)
	})
	t.Run("container port", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.deployment(), Created, "POST deployments")
		var live appsv1.Deployment
		byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 80 })
		_, err := w.apply(t, w.deployment())
		require.NoError(t, err)
		w.live(t, &live)
		require.EqualValues(t, 8080, live.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort)
		require.Len(t, live.Spec.Template.Spec.Containers[0].Ports, 1)
		w.expect(t, w.deployment(), Unchanged, none...)
	})
	t.Run("container name", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.deployment(), Created, "POST deployments")
		var live appsv1.Deployment
		byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "renamed" })
		_, err := w.apply(t, w.deployment())
		require.NoError(t, err)
		w.expect(t, w.deployment(), Unchanged, none...)
	})
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	tests := map[string]struct {
		reason string
		refs   func(w *world, t *testing.T) []metav1.OwnerReference
		check  func(t *testing.T, err error)
	}{
		"nobody's": {
			reason: "an object that nobody controls is not taken over",
			refs:   func(*world, *testing.T) []metav1.OwnerReference { return nil },
			check: func(t *testing.T, err error) {
				var owned *OwnershipError
				require.ErrorAs(t, err, &owned)
				require.Nil(t, owned.Owner)
			},
		},
		"somebody else's": {
			reason: "the error says whose it is",
			refs: func(w *world, t *testing.T) []metav1.OwnerReference {
				other := w.newOwner(t, "other")
				return []metav1.OwnerReference{*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
			},
			check: func(t *testing.T, err error) {
				var owned *OwnershipError
				require.ErrorAs(t, err, &owned)
				require.Equal(t, "other", owned.Owner.Name)
				require.ErrorContains(t, err, "ConfigMap other")
			},
		},
		"a deleted namesake's": {
			reason: "same name, other UID: the garbage collector comes for it",
			refs: func(w *world, _ *testing.T) []metav1.OwnerReference {
				namesake := w.owner.DeepCopy()
				namesake.UID = "of-old"
				return []metav1.OwnerReference{*metav1.NewControllerRef(namesake, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
			},
			check: func(t *testing.T, err error) {
				var wait *WaitingError
				require.ErrorAs(t, err, &wait)
			},
		},
	}
	for name, tc := range tests {
		for _, cache := range []string{"shown by the cache", "not shown by the cache"} {
			t.Run(name+" "+cache, func(t *testing.T) {
				w := newWorld(t)
				theirs := w.deployment()
				theirs.OwnerReferences = tc.refs(w, t)
				theirs.Spec.Replicas = new(int32(9))
				require.NoError(t, w.other.Create(t.Context(), theirs))
				if cache == "not shown by the cache" {
					w.client = blind{w.client}
				}
				_, err := w.apply(t, w.deployment())
				require.Error(t, err)
				tc.check(t, err)
				var live appsv1.Deployment
				w.live(t, &live)
				require.Equal(t, theirs.ResourceVersion, live.ResourceVersion, tc.reason)
			})
		}
	}
}

func TestChildBeingDeletedIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.expect(t, w.deployment(), Created, "POST deployments")
	live := &appsv1.Deployment{}
	byHand(t, w, live, func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/hold"} })
	require.NoError(t, w.other.Delete(t.Context(), live))
	_, err := w.apply(t, w.deployment())
	var wait *WaitingError
	require.ErrorAs(t, err, &wait)
	reason, after := wait.Waiting()
	require.Equal(t, "ChildTerminating", reason)
	require.Zero(t, after, "its deletion is an event")
	byHand(t, w, live, func(d *appsv1.Deployment) { d.Finalizers = nil })
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(w.other.Get(context.Background(), client.ObjectKeyFromObject(live), live))
	}, 10*time.Second, 20*time.Millisecond)
	w.applier.writes.Observe(live) // as its watch would
	w.expect(t, w.deployment(), Created, "POST deployments")
}

func TestRecreatedMeanwhileIsARace(t *testing.T) {
	w := newWorld(t)
	first := w.expect(t, w.deployment(), Created, "POST deployments")
	require.NoError(t, w.other.Delete(t.Context(), first.DeepCopyObject().(client.Object)))
	for _, again := range []bool{false, true} {
		if again {
			theirs := w.deployment()
			require.NoError(t, w.other.Create(t.Context(), theirs))
		}
		o, err := newOwner(w.owner, w.client)
		require.NoError(t, err)
		k, err := w.applier.kinds.of(first, w.client.Scheme())
		require.NoError(t, err)
		_, err = w.applier.send(t.Context(), wanted{kind: k, object: w.deployment(), owner: &o}, first.GetUID())
		require.True(t, apierrors.IsConflict(err), "no apply brings an object into being, or writes a namesake: %v", err)
	}
}

func TestUnknownFieldsAndInvalidObjectsAreTheServersWords(t *testing.T) {
	w := newWorld(t)
	bad := w.deployment()
	bad.Spec.Template.Spec.Containers[0].Name = "Not A Name"
	_, err := w.apply(t, bad)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.True(t, strings.HasPrefix(err.Error(), "create Deployment "+w.namespace+"/web: "), err.Error())
}

func TestApplyTriesAll(t *testing.T) {
	w := newWorld(t)
	theirs := w.deployment()
	require.NoError(t, w.other.Create(t.Context(), theirs))
	results, err := Apply(t.Context(), w.client, w.owner, w.deployment(), w.service())
	var owned *OwnershipError
	require.ErrorAs(t, err, &owned)
	require.Nil(t, results[0].Object)
	require.Equal(t, Created, results[1].Operation)
	require.NotEmpty(t, results[1].Object.(*corev1.Service).Spec.ClusterIP)
}
