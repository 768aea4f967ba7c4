package scheduledjobs_test

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
)

// Backup is the custom resource of the tests. Its definition, which controller-gen has generated from these structs, is in
// testdata.
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              BackupSpec   `json:"spec"`
	Status            BackupStatus `json:"status,omitzero"`
}

type BackupSpec struct {
	scheduledjobs.Spec `json:",inline"`
	Image              string `json:"image"`
	TTL                *int32 `json:"ttl,omitempty"`
}

type BackupStatus struct {
	scheduledjobs.Status `json:",inline"`
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
}

type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Backup `json:"items"`
}

func (b *Backup) DeepCopyObject() runtime.Object {
	out := *b
	b.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	b.Spec.Spec.DeepCopyInto(&out.Spec.Spec)
	b.Status.Status.DeepCopyInto(&out.Status.Status)
	out.Status.Conditions = slices.Clone(b.Status.Conditions)
	return &out
}

func (l *BackupList) DeepCopyObject() runtime.Object {
	out := &BackupList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Backup))
	}
	return out
}

var (
	backupVersion = schema.GroupVersion{Group: "test.opblocks.dev", Version: "v1"}
	scheme        = newScheme()
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	s.AddKnownTypes(backupVersion, &Backup{}, &BackupList{})
	metav1.AddToGroupVersion(s, backupVersion)
	return s
}

// newBackup returns a Backup that runs every hour. edit may change its spec.
func newBackup(edit ...func(*BackupSpec)) *Backup {
	b := &Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       BackupSpec{Image: "backup:1", Spec: scheduledjobs.Spec{Schedule: "0 * * * *"}},
	}
	for _, e := range edit {
		e(&b.Spec)
	}
	return b
}

// backupJob returns the Job for a run of a Backup.
func backupJob(b *Backup, scheduled time.Time) (*batchv1.Job, error) {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Labels: ownedresources.Labels(b)},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), TTLSecondsAfterFinished: b.Spec.TTL,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "backup", Image: b.Spec.Image, Args: []string{scheduled.Format(time.DateOnly)}}},
			}},
		},
	}, nil
}

func newStep() *scheduledjobs.Jobs[*Backup] {
	return scheduledjobs.New(func(b *Backup) (scheduledjobs.Spec, *scheduledjobs.Status) {
		return b.Spec.Spec, &b.Status.Status
	}, backupJob)
}
