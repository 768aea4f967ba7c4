package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestLifecycle runs the sample from creation to deletion, with the commands of a user, with each option of
// the manager.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	operatortest.EachManagerOption(t, testLifecycle)
}

func testLifecycle(t *testing.T, options ctrl.Options) {
	t.Parallel()
	u := newUser(t, cluster(t))
	_, registered := startWithRegistry(t, u.ControlPlane.Config(), u.ElectLeader(options), u.Namespace)
	kubectl := func(args ...string) string { return u.Kubectl(t, args...) }

	kubectl("create", "--filename", sampleFile)
	c := u.settled(t, sampleName, metav1.ConditionTrue)
	assert.Len(t, u.pods(t, sampleName), 2)
	assert.EqualValues(t, 2, c.Status.ReadyReplicas)
	u.condition(t, sampleName, "BackupVolume", "Succeeded")
	u.condition(t, sampleName, "Registered", "Succeeded")
	operatortest.Live(t, u, c)
	assert.Equal(t, map[string]string{u.Namespace + "/" + sampleName: c.Status.RegisteredAddress}, registered.Entries())
	assert.Equal(t, sampleName+"-0."+sampleName+"."+u.Namespace+".svc:6379", c.Status.RegisteredAddress)

	kubectl("scale", "caches/"+sampleName, "--replicas=3")
	u.settled(t, sampleName, metav1.ConditionTrue)
	assert.Len(t, u.pods(t, sampleName), 3)

	kubectl("patch", "caches", sampleName, "--type=merge", "--patch", `{"spec":{"backup":{"schedule":"@every 1s"}}}`)
	operatortest.Eventually(t, "a backup succeeds", func(a *assert.CollectT) {
		assert.NotNil(a, operatortest.Live(a, u, u.cache(sampleName)).Status.Backup.LastSuccessfulTime)
	})

	kubectl("delete", "caches", sampleName)
	assert.Empty(t, registered.Entries(), "kubectl waits for the finalizers")
	operatortest.Eventually(t, "the volume with the backups is kept, and nothing else", func(a *assert.CollectT) {
		left := strings.Fields(kubectl("get", "statefulsets,pods,services,configmaps,secrets,jobs,poddisruptionbudgets,networkpolicies,persistentvolumeclaims", "--output=name"))
		left = slices.DeleteFunc(left, func(name string) bool { return name == "configmap/kube-root-ca.crt" })
		assert.Equal(a, []string{"persistentvolumeclaim/" + sampleName + "-backups"}, left)
	})
	kept := operatortest.Live(t, u, &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta(sampleName + "-backups")})

	kubectl("create", "--filename", sampleFile)
	u.settled(t, sampleName, metav1.ConditionTrue)
	u.condition(t, sampleName, "BackupVolume", "Succeeded")
	assert.Equal(t, kept.UID, operatortest.Live(t, u, kept).UID, "a Cache of the same name takes its backups over")
	kubectl("delete", "caches", sampleName)
}

// TestDriftIsRepairedAtOnce deletes each child, and changes some.
func TestDriftIsRepairedAtOnce(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web", func(s *storev1alpha1.CacheSpec) { s.Priority = new(int32(7)) })
	u.settled(t, "web", metav1.ConditionTrue)
	for _, child := range children(u, "web") {
		u.DeleteAndAwaitNew(t, child)
	}
	u.settled(t, "web", metav1.ConditionTrue)
	set := &appsv1.StatefulSet{ObjectMeta: u.Meta("web")}
	operatortest.Change(t, u, set, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "redis:1" })
	operatortest.Eventually(t, "the image is as before", func(a *assert.CollectT) {
		assert.Equal(a, "redis:7.4-alpine", operatortest.Live(a, u, set).Spec.Template.Spec.Containers[0].Image)
	})
	require.NoError(t, u.Delete(t.Context(), u.cache("web")))
	u.Gone(t, u.cache("web"), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace + ".web"}})
}

// TestVolumesGrow checks that the pods stay, and that volumes which are deleted with the StatefulSet survive its replacement.
func TestVolumesGrow(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web")
	u.settled(t, "web", metav1.ConditionTrue)
	claim := operatortest.Live(t, u, &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta("cache-data-web-0")})
	operatortest.Eventually(t, "the volume goes with the StatefulSet", func(a *assert.CollectT) {
		assert.NotEmpty(a, operatortest.Live(a, u, claim).OwnerReferences)
	})
	volume, pods := claim.UID, u.pods(t, "web")

	u.set(t, "web", func(s *storev1alpha1.CacheSpec) { s.Storage = gi("2") })
	u.settled(t, "web", metav1.ConditionTrue)
	set := operatortest.Live(t, u, &appsv1.StatefulSet{ObjectMeta: u.Meta("web")})
	assert.Equal(t, "2Gi", set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String())
	operatortest.Eventually(t, "the volume goes with the new StatefulSet", func(a *assert.CollectT) {
		operatortest.Live(a, u, claim)
		assert.Equal(a, volume, claim.UID)
		assert.Equal(a, "2Gi", claim.Spec.Resources.Requests.Storage().String())
		if assert.Len(a, claim.OwnerReferences, 1) {
			assert.Equal(a, set.UID, claim.OwnerReferences[0].UID)
		}
	})
	assert.Equal(t, pods, u.pods(t, "web"), "no pod was replaced")

	u.set(t, "web", func(s *storev1alpha1.CacheSpec) { s.Storage = gi("1") })
	ready := u.condition(t, "web", "Stalled", "Invalid")
	assert.Contains(t, ready.Message, "volumes cannot shrink")
}

// TestClaimOfSomebodyElse checks that a claim with the name of the one for backups is neither changed nor deleted.
func TestClaimOfSomebodyElse(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	theirs := &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta("web-backups"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *gi("1")}},
	}}
	require.NoError(t, u.Create(t.Context(), theirs))
	u.create(t, "web", func(s *storev1alpha1.CacheSpec) {
		s.Backup = &storev1alpha1.BackupSpec{Schedule: "@every 1s", Storage: gi("2")}
	})
	u.settled(t, "web", metav1.ConditionTrue)
	u.condition(t, "web", "BackupVolume", "OwnedByAnother")
	require.NoError(t, u.Delete(t.Context(), u.cache("web")))
	u.Gone(t, u.cache("web"), &appsv1.StatefulSet{ObjectMeta: u.Meta("web")})
	live := operatortest.Live(t, u, &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta("web-backups")})
	assert.Equal(t, theirs.UID, live.UID)
	assert.Nil(t, live.DeletionTimestamp)
	assert.Empty(t, live.OwnerReferences)
	assert.Equal(t, "1Gi", live.Spec.Resources.Requests.Storage().String())
}

// TestDataOfSomebodyElse checks that a Cache takes no claim that another workload with data uses by its usual name.
func TestDataOfSomebodyElse(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	tests := map[string]struct{ cache, claim, reason string }{
		"Deployment":  {"db", "data-db-0", "a Deployment may use a claim of any name"},
		"StatefulSet": {"a-b", "data-a-b-0", "so the StatefulSet b calls the claim of its template data-a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			theirs := &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta(tc.claim), Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *gi("1")}},
			}}
			require.NoError(t, u.Create(t.Context(), theirs))
			u.create(t, tc.cache)
			u.settled(t, tc.cache, metav1.ConditionTrue)
			ours := &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta("cache-" + tc.claim)}
			operatortest.Eventually(t, "the volume goes with the StatefulSet", func(a *assert.CollectT) {
				assert.NotEmpty(a, operatortest.Live(a, u, ours).OwnerReferences)
			})
			require.NoError(t, u.Delete(t.Context(), u.cache(tc.cache)))
			u.Gone(t, ours)
			live := operatortest.Live(t, u, theirs)
			assert.Nil(t, live.DeletionTimestamp, tc.reason)
			assert.Empty(t, live.OwnerReferences, tc.reason)
		})
	}
}

// TestPriorityChange checks the recreation of a class whose value is immutable.
func TestPriorityChange(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web", func(s *storev1alpha1.CacheSpec) { s.Priority = new(int32(7)) })
	u.settled(t, "web", metav1.ConditionTrue)
	u.set(t, "web", func(s *storev1alpha1.CacheSpec) { s.Priority = new(int32(8)) })
	operatortest.Eventually(t, "the pod has the new priority", func(a *assert.CollectT) {
		assert.EqualValues(a, 8, *operatortest.Live(a, u, &corev1.Pod{ObjectMeta: u.Meta("web-0")}).Spec.Priority)
	})
	u.set(t, "web", func(s *storev1alpha1.CacheSpec) { s.Priority = nil })
	u.Gone(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace + ".web"}})
	u.settled(t, "web", metav1.ConditionTrue)
	require.NoError(t, u.Delete(t.Context(), u.cache("web")))
	u.Gone(t, u.cache("web"))
}

// TestRestrictedNamespace runs the pods and a backup in a namespace that enforces the restricted security context.
func TestRestrictedNamespace(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	u.Kubectl(t, "label", "namespace", u.Namespace, "pod-security.kubernetes.io/enforce=restricted")
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web", func(s *storev1alpha1.CacheSpec) { s.Backup = &storev1alpha1.BackupSpec{Schedule: "@every 1s"} })
	u.settled(t, "web", metav1.ConditionTrue)
	operatortest.Eventually(t, "a backup succeeds", func(a *assert.CollectT) {
		assert.NotNil(a, operatortest.Live(a, u, u.cache("web")).Status.Backup.LastSuccessfulTime)
	})
}

// TestQuietWhenConverged checks that events which change nothing send nothing.
func TestQuietWhenConverged(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	c := u.create(t, "web", func(s *storev1alpha1.CacheSpec) { s.Priority = new(int32(7)) })
	u.settled(t, "web", metav1.ConditionTrue)
	u.condition(t, "web", "Registered", "Succeeded")
	o.Pass(t, u, c)
	o.Requests.Take()
	o.Pass(t, u, c)
	assert.Empty(t, o.Requests.Take())
	require.NoError(t, u.Delete(t.Context(), c))
	u.Gone(t, c)
}

// children returns the children of a Cache that can be deleted and come back.
func children(u *user, name string) []client.Object {
	return []client.Object{
		u.Service(name),
		&corev1.ConfigMap{ObjectMeta: u.Meta(name + "-settings")},
		&corev1.Secret{ObjectMeta: u.Meta(name + "-password")},
		&policyv1.PodDisruptionBudget{ObjectMeta: u.Meta(name)},
		&networkingv1.NetworkPolicy{ObjectMeta: u.Meta(name)},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace + "." + name}},
		&appsv1.StatefulSet{ObjectMeta: u.Meta(name)},
	}
}
