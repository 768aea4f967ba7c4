package ownedresources

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Go's own numbers and lists in an unstructured object are what most people write.
func TestUnstructuredOfGoValues(t *testing.T) {
	w := newWorld(t)
	want := func() client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "web", "labels": map[string]string{"app": "web"}},
			"spec": map[string]any{
				"selector": map[string]string{"app": "web"},
				"ports":    []map[string]any{{"name": "http", "port": 80, "targetPort": int32(8080)}},
			},
		}}
	}
	for _, op := range []Operation{Created, Unchanged} {
		results, err := Apply(t.Context(), w.client, w.owner, want())
		require.NoError(t, err)
		require.Equal(t, op, results[0].Operation)
	}
	var live corev1.Service
	w.live(t, &live)
	require.Equal(t, int32(8080), live.Spec.Ports[0].TargetPort.IntVal)

	bad := want().(*unstructured.Unstructured)
	bad.Object["spec"] = func() {}
	_, err := Apply(t.Context(), w.client, w.owner, bad)
	require.ErrorContains(t, err, "no JSON form")
}

// An owner that is a child itself carries our annotations; builders copy an owner's.
func TestCopiedAnnotationsAreNotOurs(t *testing.T) {
	w := newWorld(t)
	want := func() *corev1.Service {
		s := w.service()
		s.Annotations = map[string]string{AnnotationApplied: "v1:applied:0", AnnotationSet: "of-the-owner", "team": "shop"}
		return s
	}
	live := w.expect(t, want(), Created, "POST services")
	require.NotContains(t, live.GetAnnotations(), AnnotationSet)
	require.Equal(t, "shop", live.GetAnnotations()["team"])
	w.expect(t, want(), Unchanged, none...)
}

func TestChildThatHasFailed(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded", Message: "too often"}}
	late := rollout(func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "ProgressDeadlineExceeded" })
	for reason, obj := range map[string]client.Object{"JobFailed": job, "ProgressDeadlineExceeded": late} {
		k, err := builtInKinds.of(obj, scheme.Scheme)
		require.NoError(t, err)
		err = k.ready(obj)
		var failed *FailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, reason, failed.Reason())
		require.ErrorContains(t, err, k.gvk.Kind+" ns/web: ")
		require.ErrorIs(t, err, ctrlreconcile.TerminalError(nil), "an event of the child brings the next pass")
	}
}

func TestCreateOnlyForAnotherType(t *testing.T) {
	w := newWorld(t)
	set := Ensure(Build(settings, CreateOnly(func(*appsv1.Deployment) {})))
	require.EqualError(t, set.Reconcile(t.Context(), w.client, w.owner),
		"child *v1.ConfigMap: its CreateOnly is for *v1.Deployment: give that a function of *v1.ConfigMap")
	set = Ensure(Build(settings, CreateOnly(func(client.Object) {})))
	require.NoError(t, set.Reconcile(t.Context(), w.client, w.owner), "an interface that the child has will do")
}

// Without controllers a namespace stays Terminating.
func TestNamespaceBeingDeleted(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.other.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	_, err := w.apply(t, w.service())
	var wait *WaitingError
	require.ErrorAs(t, err, &wait, "nothing is wrong with the object")
	require.ErrorContains(t, err, "its namespace is being deleted")
}

// What is remembered of owners and children goes with them.
func TestNothingIsRememberedOfWhatIsGone(t *testing.T) {
	w := newWorld(t)
	set := Ensure(Build(settings))
	for range 2 { // the second time it is found to be as wanted
		require.NoError(t, set.Reconcile(t.Context(), w.client, w.owner))
	}
	want, err := set.applier.want(&owner{client: w.client, reference: metav1.OwnerReference{UID: w.owner.UID}}, settings(w.owner), &childOptions{})
	require.NoError(t, err)
	set.applier.recreated.set(&want)
	require.Len(t, set.pruned.byOwner, 1)
	require.Len(t, set.applier.verified.byUID, 1)

	child := settings(w.owner)
	require.True(t, w.exists(t, child))
	set.observe().Delete(deletionOf(child))
	set.forgetOwners().Delete(t.Context(), deletionOf(w.owner), nil)
	require.Empty(t, set.pruned.byOwner)
	require.Empty(t, set.applier.verified.byUID)
	require.Empty(t, set.applier.recreated.byName)
}

func TestRecreatedOnceCountsAnewAfterAnotherChange(t *testing.T) {
	w := newWorld(t)
	with := func(label string) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Selector.MatchLabels["is"], d.Spec.Template.Labels["is"] = label, label
		return d
	}
	w.expect(t, with("a"), Created, "POST deployments")
	for _, label := range []string{"b", "a", "b"} {
		_, err := w.apply(t, with(label), Recreate())
		require.ErrorAs(t, err, new(*WaitingError), "to %s", label)
		result, err := w.apply(t, with(label), Recreate())
		require.NoError(t, err)
		require.Equal(t, Created, result.Operation)
	}
}

func TestAlreadyExistsThenGoneIsARace(t *testing.T) {
	w := newWorld(t)
	want, err := w.applier.want(ownerOf(t, w), w.service(), &childOptions{})
	require.NoError(t, err)
	want.object.SetNamespace(w.namespace)
	exists := errors.New("already exists")
	_, err = w.applier.unseen(t.Context(), want, exists)
	require.ErrorIs(t, err, exists)
}
