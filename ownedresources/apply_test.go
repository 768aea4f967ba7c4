package ownedresources

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/internal/requests"
)

// No controllers run: nobody but the test writes.
var controlPlane = controlplanetest.Shared()

// world is a real API server, an owner on it, and an applier that remembers nothing at first.
type world struct {
	client    client.Client // counted
	other     client.Client // somebody else's
	count     *requests.Count
	namespace string
	owner     *corev1.ConfigMap
	applier   *applier
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cp := controlPlane(t)
	w := &world{count: &requests.Count{}, namespace: controlplanetest.Namespace(t, cp), applier: newApplier()}
	var err error
	w.client, err = client.New(w.count.Wrap(cp.Config()), client.Options{})
	require.NoError(t, err)
	w.other, err = client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	w.owner = w.newOwner(t, "web")
	return w
}

// newOwner takes a ConfigMap for an owner: whatever has a UID may own.
func (w *world) newOwner(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	require.NoError(t, w.other.Create(t.Context(), owner))
	return owner
}

func (w *world) apply(t *testing.T, want client.Object, options ...ChildOption) (Result, error) {
	t.Helper()
	o, err := newOwner(w.owner, w.client)
	require.NoError(t, err)
	_, err = w.applier.desire(&o, []client.Object{want})
	require.NoError(t, err)
	var child childOptions
	for _, option := range options {
		option(&child)
	}
	w.count.Sent()
	return w.applier.apply(t.Context(), &o, want, &child)
}

// expect applies, and compares what was done and sent besides the read that a cache would serve.
func (w *world) expect(t *testing.T, want client.Object, op Operation, sent ...string) client.Object {
	t.Helper()
	result, err := w.apply(t, want)
	require.NoError(t, err)
	require.Equal(t, op, result.Operation)
	got := w.count.Sent()
	require.NotEmpty(t, got, "the read of a cache")
	require.Equal(t, sent, slices.Clip(got[1:]))
	return result.Object
}

func (w *world) live(t *testing.T, obj client.Object) {
	t.Helper()
	require.NoError(t, w.other.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "web"}, obj))
}

// byHand changes the live object as kubectl edit would.
func byHand[T client.Object](t *testing.T, w *world, obj T, change func(T)) {
	t.Helper()
	w.live(t, obj)
	change(obj)
	require.NoError(t, w.other.Update(t.Context(), obj, client.FieldOwner("kubectl-edit")))
}

var none = []string{}

func (w *world) deployment() *appsv1.Deployment {
	d := NewDeployment(w.owner, map[string]string{"app": "web"}, corev1.Container{
		Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "MODE", Value: "shop"}},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	})
	d.Spec.Replicas = new(int32(2))
	return d
}

func (w *world) service() *corev1.Service {
	return NewService(w.owner, map[string]string{"app": "web"}, corev1.ServicePort{Name: "http", Port: 80})
}

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

func resourceOf(obj client.Object) string {
	switch obj.(type) {
	case *appsv1.Deployment:
		return "deployments"
	case *corev1.Service:
		return "services"
	}
	return "configmaps"
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

func TestRestartMarkSurvivesAnApply(t *testing.T) {
	w := newWorld(t)
	w.expect(t, w.deployment(), Created, "POST deployments")
	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
	})
	want := w.deployment()
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	var live appsv1.Deployment
	w.live(t, &live)
	require.Equal(t, "now", live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
	require.Len(t, live.Spec.Template.Spec.Containers, 2)
}

func TestReplicasUnsetAreTheAutoscalers(t *testing.T) {
	w := newWorld(t)
	want := w.deployment()
	want.Spec.Replicas = nil
	w.expect(t, want, Created, "POST deployments")
	live := &appsv1.Deployment{}
	w.live(t, live)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	require.NoError(t, w.other.SubResource("scale").Update(t.Context(), live, client.WithSubResourceBody(scale)))
	w.expect(t, want, Unchanged, none...)
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	w.live(t, live)
	require.EqualValues(t, 7, *live.Spec.Replicas)
}

func TestServiceKeepsWhatTheServerGave(t *testing.T) {
	w := newWorld(t)
	want := w.service()
	want.Spec.Type = corev1.ServiceTypeNodePort
	w.expect(t, want, Created, "POST services")
	var before, after corev1.Service
	w.live(t, &before)
	want.Spec.Ports[0].TargetPort.IntVal = 8080
	want.Labels["x"] = "y"
	w.expect(t, want, Applied, "GET services", "PATCH services", "PATCH services")
	w.live(t, &after)
	require.Equal(t, before.Spec.ClusterIP, after.Spec.ClusterIP)
	require.Equal(t, before.Spec.Ports[0].NodePort, after.Spec.Ports[0].NodePort)
	byHand(t, w, &after, func(s *corev1.Service) { s.Spec.Selector["also"] = "this" })
	w.expect(t, want, Applied, "PATCH services")
	w.live(t, &after)
	require.Equal(t, map[string]string{"app": "web"}, after.Spec.Selector, "a selector is ours as a whole")
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

// blind is a client whose cache shows nothing. Unstructured reads go past a manager's cache.
type blind struct{ client.Client }

func (b blind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, live := obj.(interface{ UnstructuredContent() map[string]any }); live {
		return b.Client.Get(ctx, key, obj, opts...)
	}
	return apierrors.NewNotFound(appsv1.Resource("deployments"), key.Name)
}

func TestOwnObjectThatTheCacheDoesNotShow(t *testing.T) {
	w := newWorld(t)
	seeing := w.client
	w.client = blind{seeing}
	_, err := w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, []string{"POST deployments"}, w.count.Sent())

	_, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Empty(t, w.count.Sent(), "it is remembered until the cache shows it")

	w.applier = newApplier()
	_, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, []string{"POST deployments", "GET deployments"}, w.count.Sent(), "after a restart it is found out")

	w.applier = newApplier()
	w.applier.guard.clock = clocktesting.NewFakePassiveClock(time.Now().Add(2 * cacheDelay))
	_, err = w.apply(t, w.deployment())
	var hidden *CacheError
	require.ErrorAs(t, err, &hidden, "a cache that is behind for that long will never show it")
	require.Equal(t, "NotInCache", hidden.Reason())
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

func TestTakingOverFromAnOlderOperator(t *testing.T) {
	w := newWorld(t)
	old := w.deployment()
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	old.Spec.Template.Spec.Containers[0].Env = append(old.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "OLD"})
	require.NoError(t, w.other.Create(t.Context(), old, client.FieldOwner("manager")))
	result, err := w.apply(t, w.deployment(), FormerManagers("manager"))
	require.NoError(t, err)
	require.Equal(t, Applied, result.Operation)
	var live appsv1.Deployment
	w.live(t, &live)
	require.Len(t, live.Spec.Template.Spec.Containers[0].Env, 1, "what the older operator set and we do not want goes")
	w.expect(t, w.deployment(), Unchanged, none...)
}

func TestInvalidCalls(t *testing.T) {
	w := newWorld(t)
	noUID := w.owner.DeepCopy()
	noUID.UID = ""
	elsewhere := w.deployment()
	elsewhere.Namespace = "kube-system"
	nameless := w.deployment()
	nameless.Name = ""
	var missing *appsv1.Deployment
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
