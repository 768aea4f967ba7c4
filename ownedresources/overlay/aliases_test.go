package overlay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources/overlay"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// If a field is protected, its alias is protected too, and the other way round. If an object that contains a field is
// protected, the alias of the field is protected as well.
func TestProtectAliases(t *testing.T) {
	const (
		sidecar    = `{name: web, securityContext: {appArmorProfile: {type: Unconfined}}}`
		annotation = `metadata.annotations[container.apparmor.security.beta.kubernetes.io/web]`
		anyProfile = `metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]`
		unconfined = `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/web: unconfined}}}`
		claim      = `spec.volumes[scratch].ephemeral.volumeClaimTemplate`
		// The base also has these fields, which the patches delete.
		more = `
metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/metrics: runtime/default}}
spec:
  serviceAccount: old
  containers:
  - {name: web, image: a}
  - {name: metrics, image: b, securityContext: {runAsUser: 1, appArmorProfile: {type: RuntimeDefault}}}
  volumes:
  - {name: scratch, ephemeral: {volumeClaimTemplate: {spec: {dataSource: {kind: PersistentVolumeClaim, name: a}}}}}`
	)
	cases := map[string]struct {
		reason  string
		protect string
		patch   string
		refused string // the only path that is refused
		needed  string // the path that the operator needs, if it is not the refused path
	}{
		"Account":              {reason: "The older name.", protect: "spec.serviceAccountName", patch: `{spec: {serviceAccount: admin}}`, refused: "spec.serviceAccount", needed: "spec.serviceAccountName"},
		"AccountRemoved":       {reason: "Null.", protect: "spec.serviceAccountName", patch: `{spec: {serviceAccount: null}}`, refused: "spec.serviceAccount", needed: "spec.serviceAccountName"},
		"AccountReplaced":      {reason: "A directive around it.", protect: "spec.serviceAccountName", patch: `{spec: {$retainKeys: [containers, volumes]}}`, refused: "spec.serviceAccount", needed: "spec.serviceAccountName"},
		"AccountBack":          {reason: "The newer name, where the operator protects the older.", protect: "spec.serviceAccount", patch: `{spec: {serviceAccountName: admin}}`, refused: "spec.serviceAccountName", needed: "spec.serviceAccount"},
		"AccountInSpec":        {reason: "All of it is protected anyway.", protect: "spec", patch: `{spec: {serviceAccount: admin}}`, refused: "spec"},
		"AccountKept":          {reason: "The same value.", protect: "spec.serviceAccountName", patch: `{spec: {serviceAccount: old}}`},
		"Profile":              {reason: "An annotation names the container.", protect: "spec.containers[web].securityContext.appArmorProfile", patch: unconfined, refused: annotation, needed: "spec.containers[web].securityContext.appArmorProfile"},
		"ProfileType":          {reason: "A part of the field.", protect: "spec.containers[web].securityContext.appArmorProfile.type", patch: unconfined, refused: annotation, needed: "spec.containers[web].securityContext.appArmorProfile"},
		"ProfileOfInit":        {reason: "Of an init container too.", protect: "spec.initContainers[web].securityContext.appArmorProfile", patch: unconfined, refused: annotation, needed: "spec.initContainers[web].securityContext.appArmorProfile"},
		"ProfileOfPod":         {reason: "The annotation precedes the profile of the pod.", protect: "spec.securityContext.appArmorProfile", patch: unconfined, refused: anyProfile, needed: "spec.securityContext.appArmorProfile"},
		"ProfileInContext":     {reason: "What is around the field.", protect: "spec.containers[web].securityContext", patch: unconfined, refused: annotation, needed: "spec.containers[web].securityContext.appArmorProfile"},
		"ProfileInContainer":   {reason: "The whole container.", protect: "spec.containers[web]", patch: unconfined, refused: annotation, needed: "spec.containers[web].securityContext.appArmorProfile"},
		"ProfileInContainers":  {reason: "All containers.", protect: "spec.containers", patch: unconfined, refused: anyProfile, needed: "spec.containers[*].securityContext.appArmorProfile"},
		"ProfileInPodContext":  {reason: "All that the pod has.", protect: "spec.securityContext", patch: unconfined, refused: anyProfile, needed: "spec.securityContext.appArmorProfile"},
		"ProfileInSpec":        {reason: "The annotation is not in the spec.", protect: "spec", patch: unconfined, refused: anyProfile, needed: "spec.containers[*].securityContext.appArmorProfile"},
		"ProfileRemoved":       {reason: "Null.", protect: "spec.containers[metrics]", patch: `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/metrics: null}}}`, refused: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/metrics]", needed: "spec.containers[metrics].securityContext.appArmorProfile"},
		"ProfilesReplaced":     {reason: "All annotations.", protect: "spec.containers[metrics]", patch: `{metadata: {annotations: {$patch: replace}}}`, refused: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/metrics]", needed: "spec.containers[metrics].securityContext.appArmorProfile"},
		"ProfileOfOther":       {reason: "The annotation of another container.", protect: "spec.containers[metrics]", patch: unconfined},
		"ProfileOfName":        {reason: "Only the name is protected.", protect: "spec.containers[web].name", patch: unconfined},
		"ProfileBack":          {reason: "The field, where the operator protects the annotation.", protect: annotation, patch: `{spec: {containers: [` + sidecar + `]}}`, refused: "spec.containers[web].securityContext.appArmorProfile", needed: annotation},
		"ProfileBackRemoved":   {reason: "With the container.", protect: "metadata", patch: `{spec: {containers: [{name: metrics, $patch: delete}]}}`, refused: "spec.containers[*].securityContext.appArmorProfile", needed: anyProfile},
		"ProfileBackDeleted":   {reason: "With what is around it.", protect: "metadata.annotations", patch: `{spec: {containers: [{name: metrics, securityContext: {$patch: delete}}]}}`, refused: "spec.containers[*].securityContext.appArmorProfile", needed: anyProfile},
		"ProfileBackOfInit":    {reason: "In an init container.", protect: "metadata.annotations", patch: `{spec: {initContainers: [` + sidecar + `]}}`, refused: "spec.initContainers[*].securityContext.appArmorProfile", needed: anyProfile},
		"ProfileBackOfPod":     {reason: "In the pod.", protect: annotation, patch: `{spec: {securityContext: {appArmorProfile: {type: Unconfined}}}}`, refused: "spec.securityContext.appArmorProfile", needed: annotation},
		"ProfileBackNone":      {reason: "Another field beside it.", protect: "metadata.annotations", patch: `{spec: {containers: [{name: metrics, securityContext: {runAsUser: 2}}, {name: new, image: c}]}}`},
		"OtherAnnotation":      {reason: "Another annotation.", protect: "spec", patch: `{metadata: {annotations: {note: a}}}`},
		"OtherAnnotationKept":  {reason: "It sets nothing.", protect: "metadata.annotations[note]", patch: `{spec: {containers: [` + sidecar + `]}}`},
		"StorageClass":         {reason: "The annotation precedes the field.", protect: claim + ".spec.storageClassName", patch: `{spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {metadata: {annotations: {volume.beta.kubernetes.io/storage-class: fast}}}}}]}}`, refused: claim + ".metadata.annotations[volume.beta.kubernetes.io/storage-class]", needed: claim + ".spec.storageClassName"},
		"StorageClassBack":     {reason: "The field.", protect: claim + ".metadata", patch: `{spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}]}}`, refused: claim + ".spec.storageClassName", needed: claim + ".metadata.annotations[volume.beta.kubernetes.io/storage-class]"},
		"StorageClassOfOther":  {reason: "Of another volume.", protect: "spec.volumes[data].ephemeral.volumeClaimTemplate.metadata", patch: `{spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}]}}`},
		"DataSource":           {reason: "The other reference.", protect: claim + ".spec.dataSource", patch: `{spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {dataSourceRef: {kind: PersistentVolumeClaim, name: b}}}}}]}}`, refused: claim + ".spec.dataSourceRef", needed: claim + ".spec.dataSource"},
		"DataSourceBack":       {reason: "In the other direction.", protect: claim + ".spec.dataSourceRef", patch: `{spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {dataSource: null}}}}]}}`, refused: claim + ".spec.dataSource", needed: claim + ".spec.dataSourceRef"},
		"DataSourceInTemplate": {reason: "The whole volume is protected.", protect: "spec.volumes[scratch]", patch: `{spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {dataSource: null}}}}]}}`, refused: "spec.volumes[scratch]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := patchOf(t, tc.patch).Apply(template(t, more), nil, overlay.Protect(tc.protect))
			if tc.refused == "" {
				require.NoError(t, err, tc.reason)
				return
			}
			needed := "the operator needs it"
			if tc.needed != "" {
				needed = "it means the same as " + tc.needed + ", which the operator needs"
			}
			require.EqualError(t, err, "spec.podTemplate."+tc.refused+": Forbidden: cannot be changed, because "+needed+
				": remove from the patch what changes, replaces or deletes it", tc.reason)
		})
	}
}

// The API server uses each alias of the table, in the pods that controllers create from a workload's template. If the field
// is protected, a patch that sets the alias is refused.
func TestAliasesAreHonoured(t *testing.T) {
	c, namespace := newClient(t)
	createAccounts(t, c, namespace)
	createDefaultClass(t, c, namespace)
	const (
		containers = `containers: [{name: web, image: a}]`
		claim      = `{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`
		scratch    = `volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: ` + claim + `}}}]`
	)
	patchClaim := func(patch string) string {
		return `{spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: ` + patch + `}}]}}`
	}
	for name, tc := range map[string]struct {
		protect, base, patch string
		set                  func(*corev1.Pod, *corev1.PersistentVolumeClaim) any // returns the value of the field that the field and its alias set
		before, after        any
	}{
		"Account": {
			protect: "spec.serviceAccountName", base: containers, patch: `{spec: {serviceAccount: admin}}`,
			set:    func(p *corev1.Pod, _ *corev1.PersistentVolumeClaim) any { return p.Spec.ServiceAccountName },
			before: "", after: "admin",
		},
		"OlderAccount": {
			protect: "spec.serviceAccount", base: containers, patch: `{spec: {serviceAccountName: admin}}`,
			set:    func(p *corev1.Pod, _ *corev1.PersistentVolumeClaim) any { return p.Spec.DeprecatedServiceAccount },
			before: "", after: "admin",
		},
		"Profile": {
			protect: "spec.containers[web].securityContext", base: containers,
			patch: `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/web: unconfined}}}`,
			set:   func(p *corev1.Pod, _ *corev1.PersistentVolumeClaim) any { return profileOf(p.Spec.Containers[0]) },
			after: "Unconfined", before: "",
		},
		"ProfileOfPod": {
			protect: "spec.securityContext", base: containers,
			patch: `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/web: unconfined}}}`,
			set:   func(p *corev1.Pod, _ *corev1.PersistentVolumeClaim) any { return profileOf(p.Spec.Containers[0]) },
			after: "Unconfined", before: "",
		},
		"ProfileOfInit": {
			protect: "spec.initContainers", base: containers + `, initContainers: [{name: setup, image: a}]`,
			patch: `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/setup: unconfined}}}`,
			set:   func(p *corev1.Pod, _ *corev1.PersistentVolumeClaim) any { return profileOf(p.Spec.InitContainers[0]) },
			after: "Unconfined", before: "",
		},
		"StorageClass": {
			protect: "spec.volumes[scratch].ephemeral.volumeClaimTemplate.spec", base: containers + ", " + scratch,
			patch: patchClaim(`{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: fast}}}`),
			set: func(_ *corev1.Pod, claim *corev1.PersistentVolumeClaim) any {
				return classOf(claim)
			},
			before: "standard", after: "fast",
		},
		"DataSource": {
			protect: "spec.volumes[scratch].ephemeral.volumeClaimTemplate.spec.dataSource", base: containers + ", " + scratch,
			patch: patchClaim(`{spec: {dataSourceRef: {kind: PersistentVolumeClaim, name: other}}}`),
			set:   func(_ *corev1.Pod, claim *corev1.PersistentVolumeClaim) any { return claim.Spec.DataSource != nil }, before: false, after: true,
		},
		"DataSourceRef": {
			protect: "spec.volumes[scratch].ephemeral.volumeClaimTemplate.spec.dataSourceRef", base: containers + ", " + scratch,
			patch: patchClaim(`{spec: {dataSource: {kind: PersistentVolumeClaim, name: other}}}`),
			set:   func(_ *corev1.Pod, claim *corev1.PersistentVolumeClaim) any { return claim.Spec.DataSourceRef != nil }, before: false, after: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := template(t, `{metadata: {labels: {app: web}}, spec: {`+tc.base+`}}`)
			patch := patchOf(t, tc.patch)
			merged, err := patch.Apply(given, selector)
			require.NoError(t, err)
			for prefix, want := range map[string]any{"before": tc.before, "after": tc.after} {
				pods := map[string]corev1.PodTemplateSpec{"before": given, "after": merged}[prefix]
				pod, claim := created(t, c, namespace, strings.ToLower(prefix+"-"+name), pods)
				require.Equal(t, want, tc.set(pod, claim), prefix)
			}
			_, err = patch.Apply(given, selector, overlay.Protect(tc.protect))
			require.True(t, apierrors.IsInvalid(err), "%v", err)
		})
	}
}

// Protect needs to know only the aliases of TestProtectAliases. Annotations that once set a field of a pod, such as
// the seccomp annotations, have no effect any more. The API server refuses a priority, a preemptionPolicy or an
// overhead that differs from the value that it computes.
func TestNoOtherAliases(t *testing.T) {
	c, namespace := newClient(t)
	createAccounts(t, c, namespace)
	given := template(t, `{metadata: {labels: {app: web}}, spec: {automountServiceAccountToken: false, containers: [{name: web, image: a}]}}`)
	old := given.DeepCopy()
	old.Annotations = map[string]string{
		"seccomp.security.alpha.kubernetes.io/pod":           "unconfined",
		"container.seccomp.security.alpha.kubernetes.io/web": "unconfined",
		"scheduler.alpha.kubernetes.io/critical-pod":         "",
		"scheduler.alpha.kubernetes.io/tolerations":          `[{"key": "a", "operator": "Exists"}]`,
		"scheduler.alpha.kubernetes.io/affinity":             `{"nodeAffinity": {}}`,
		"scheduler.alpha.kubernetes.io/name":                 "other",
		"security.alpha.kubernetes.io/sysctls":               "kernel.shm_rmid_forced=1",
		"security.alpha.kubernetes.io/unsafe-sysctls":        "kernel.msgmax=1",
		"pod.beta.kubernetes.io/init-containers":             `[{"name": "a", "image": "b"}]`,
		"pod.alpha.kubernetes.io/init-containers":            `[{"name": "a", "image": "b"}]`,
		"pod.beta.kubernetes.io/hostname":                    "other",
		"pod.beta.kubernetes.io/subdomain":                   "other",
	}
	want, _ := created(t, c, namespace, "plain", given)
	got, _ := created(t, c, namespace, "old", *old)
	require.Empty(t, cmp.Diff(want.Spec, got.Spec))

	for field, patch := range map[string]string{
		"priority":         `{spec: {priority: 1000}}`,
		"PreemptionPolicy": `{spec: {preemptionPolicy: Never}}`,
		"Overhead":         `{spec: {overhead: {cpu: 1}}}`,
	} {
		merged, err := patchOf(t, patch).Apply(given, selector)
		require.NoError(t, err)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "computed"}, Spec: merged.Spec}
		require.ErrorContains(t, c.Create(t.Context(), pod), field)
	}
}

// created creates a Deployment, and returns a pod that was created from its template, and the claim of the pod's last
// volume.
func created(t *testing.T, c client.Client, namespace, name string, pods corev1.PodTemplateSpec) (*corev1.Pod, *corev1.PersistentVolumeClaim) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods}}
	require.NoError(t, c.Create(t.Context(), d))
	live := d.Spec.Template
	meta.Labels, meta.Annotations = live.Labels, live.Annotations
	pod := &corev1.Pod{ObjectMeta: meta, Spec: live.Spec}
	require.NoError(t, c.Create(t.Context(), pod))
	for _, volume := range pod.Spec.Volumes {
		if volume.Ephemeral != nil {
			return pod, createdClaim(t, c, namespace, name, volume.Ephemeral.VolumeClaimTemplate)
		}
	}
	return pod, nil
}

func createdClaim(t *testing.T, c client.Client, namespace, name string, template *corev1.PersistentVolumeClaimTemplate) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: template.Annotations}, Spec: template.Spec,
	}
	require.NoError(t, c.Create(t.Context(), claim))
	return claim
}

func createAccounts(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	for _, name := range []string{"default", "admin"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), account)))
	}
}

// createDefaultClass creates a default StorageClass, and waits until the API server sets it in claims without a
// class.
func createDefaultClass(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "standard", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "example.com/none",
	}
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), class)))
	t.Cleanup(func() { require.NoError(t, c.Delete(context.WithoutCancel(t.Context()), class)) })
	spec := template(t, `{spec: {volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}`).
		Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec
	require.Eventually(t, func() bool {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: spec}
		return c.Create(t.Context(), claim, client.DryRunAll) == nil && claim.Spec.StorageClassName != nil
	}, controlplane.Patience, 20*time.Millisecond)
}

func profileOf(c corev1.Container) string {
	if c.SecurityContext == nil || c.SecurityContext.AppArmorProfile == nil {
		return ""
	}
	return string(c.SecurityContext.AppArmorProfile.Type)
}

// classOf returns the StorageClass of the claim, as the controllers read it.
func classOf(claim *corev1.PersistentVolumeClaim) string {
	if class, found := claim.Annotations[corev1.BetaStorageClassAnnotation]; found && claim.Spec.StorageClassName == nil {
		return class
	}
	return *claim.Spec.StorageClassName
}
