package controller

import (
	"cmp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
)

// conditionBackupVolume shows whether the copies have a place.
const conditionBackupVolume = "BackupVolume"

// backupVolume returns the claim for the copies, or nil if there are to be no backups.
func backupVolume(c *storev1alpha1.Cache) *corev1.PersistentVolumeClaim {
	if c.Spec.Backup == nil {
		return nil
	}
	return &corev1.PersistentVolumeClaim{ObjectMeta: backupMeta(c), Spec: claimSpec(c.Spec.Backup.Storage)}
}

func backupMeta(c *storev1alpha1.Cache) metav1.ObjectMeta {
	meta := ownedresources.ObjectMeta(c)
	meta.Name += "-backups"
	return meta
}

// keepBackups reports whether the copies stay without the Cache. Another Cache of its name takes them over.
func keepBackups(c *storev1alpha1.Cache) bool { return c.Spec.KeepBackups }

// backupSchedule returns when to copy, and where that is recorded. One copy is made at a time, and none into a claim of
// somebody else.
func backupSchedule(c *storev1alpha1.Cache) (scheduledjobs.Spec, *scheduledjobs.Status) {
	volume, _ := conditions.Get(c.Status.Conditions, conditionBackupVolume)
	if c.Spec.Backup == nil || volume.Reason == (&ownedresources.OwnershipError{}).Reason() {
		return scheduledjobs.Spec{Suspend: true}, &c.Status.Backup
	}
	return scheduledjobs.Spec{Schedule: c.Spec.Backup.Schedule}, &c.Status.Backup
}

// backupJob returns the Job that copies the data of the primary into a file, whose name is the time.
func backupJob(c *storev1alpha1.Cache, scheduled time.Time) (*batchv1.Job, error) {
	file := "/backups/" + scheduled.UTC().Format("2006-01-02T15-04") + ".rdb"
	job := ownedresources.NewJob(c, corev1.Container{
		Name:         "backup",
		Image:        cmp.Or(c.Spec.Image, defaultImage),
		Command:      []string{"redis-cli", "-h", primary(c), "--rdb", file},
		Env:          []corev1.EnvVar{passwordVariable(c, "REDISCLI_AUTH")},
		VolumeMounts: []corev1.VolumeMount{{Name: "backups", MountPath: "/backups"}},
	})
	pod := &job.Spec.Template.Spec
	pod.SecurityContext.RunAsUser, pod.SecurityContext.FSGroup = new(int64(user)), new(int64(user))
	pod.AutomountServiceAccountToken = new(false)
	pod.Volumes = []corev1.Volume{{Name: "backups", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: backupMeta(c).Name},
	}}}
	return job, nil
}
