package blog_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	finalizer = "blogs.example.com/dns"

	conditionReady    = "Ready"
	conditionMigrated = "Migrated"
)

// dnsClient has the methods of the DNS server that the operator calls. Each owner has at most one host.
type dnsClient interface {
	Host(ctx context.Context, owner string) (string, error)
	SetHost(ctx context.Context, owner, host string) error
	Remove(ctx context.Context, owner string) error
}

// BlogReconciler reconciles Blogs. It is written in the style of the kubebuilder book, and uses only controller-runtime.
type BlogReconciler struct {
	client.Client
	APIReader client.Reader // reads from the API server: the cache may be old, and creating a Job or a DNS record checks no version
	Scheme    *runtime.Scheme
	DNS       dnsClient
}

// SetupWithManager adds the controller to the manager.
func (r *BlogReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&Blog{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&batchv1.Job{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		Owns(&corev1.Service{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Complete(r)
}

// Reconcile makes one pass over a Blog.
func (r *BlogReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	blog := &Blog{}
	if err := r.APIReader.Get(ctx, req.NamespacedName, blog); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !blog.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, blog)
	}
	if controllerutil.AddFinalizer(blog, finalizer) {
		if err := r.Update(ctx, blog); err != nil {
			return ctrl.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}

	before := blog.Status
	before.Conditions = append([]metav1.Condition(nil), blog.Status.Conditions...)
	reconcileErr := r.reconcile(ctx, blog)
	if equality.Semantic.DeepEqual(before, blog.Status) {
		return ctrl.Result{}, reconcileErr
	}
	if err := r.Status().Update(ctx, blog); client.IgnoreNotFound(err) != nil {
		if reconcileErr != nil {
			log.FromContext(ctx).Error(err, "Cannot update the status")
			return ctrl.Result{}, reconcileErr
		}
		return ctrl.Result{}, fmt.Errorf("update status: %w", err)
	}
	return ctrl.Result{}, reconcileErr
}

// finalize removes what owner references do not remove, and then the finalizer.
func (r *BlogReconciler) finalize(ctx context.Context, blog *Blog) error {
	if !controllerutil.ContainsFinalizer(blog, finalizer) {
		return nil
	}
	if err := r.DNS.Remove(ctx, owner(blog)); err != nil {
		return fmt.Errorf("remove DNS record: %w", err)
	}
	controllerutil.RemoveFinalizer(blog, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, blog))
}

// reconcile creates and updates the children in order, and sets the status of blog in memory.
func (r *BlogReconciler) reconcile(ctx context.Context, blog *Blog) error {
	if err := r.reconcileSecret(ctx, blog); err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	settings, err := r.reconcileConfigMap(ctx, blog)
	if err != nil {
		return fmt.Errorf("configmap: %w", err)
	}
	if err := r.reconcileServices(ctx, blog); err != nil {
		return fmt.Errorf("services: %w", err)
	}
	if err := r.reconcileBudget(ctx, blog); err != nil {
		return fmt.Errorf("poddisruptionbudget: %w", err)
	}
	if err := r.reconcileDNS(ctx, blog); err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	migrated, err := r.reconcileMigration(ctx, blog)
	if err != nil {
		return fmt.Errorf("migration: %w", err)
	}
	if !migrated { // until the migration is done, the pods keep the old version
		setCondition(blog, conditionReady, metav1.ConditionFalse, "Migrating", "the data is migrated to version "+blog.Spec.Version)
		return nil
	}
	set, err := r.reconcileStatefulSet(ctx, blog, hashOf(settings))
	if err != nil {
		return fmt.Errorf("statefulset: %w", err)
	}
	observe(blog, set)
	return nil
}

// reconcileMigration runs a Job for each version. It reports whether the data was migrated to the version in the spec.
func (r *BlogReconciler) reconcileMigration(ctx context.Context, blog *Blog) (done bool, err error) {
	if blog.Status.MigratedVersion == blog.Spec.Version {
		return true, nil
	}
	job := migrationJob(blog)
	if err := r.createIfMissing(ctx, blog, job); err != nil {
		return false, err
	}
	switch {
	case hasCondition(job, batchv1.JobComplete):
		blog.Status.MigratedVersion = blog.Spec.Version
		setCondition(blog, conditionMigrated, metav1.ConditionTrue, "Complete", "the data is for version "+blog.Spec.Version)
		return true, nil
	case hasCondition(job, batchv1.JobFailed):
		setCondition(blog, conditionMigrated, metav1.ConditionFalse, "Failed", "Job "+job.Name+" has failed")
	default:
		setCondition(blog, conditionMigrated, metav1.ConditionFalse, "Running", "Job "+job.Name+" runs")
	}
	return false, nil
}

// reconcileDNS sets the host in the DNS server.
func (r *BlogReconciler) reconcileDNS(ctx context.Context, blog *Blog) error {
	host, err := r.DNS.Host(ctx, owner(blog))
	if err != nil || host == blog.Spec.Host {
		return err
	}
	return r.DNS.SetHost(ctx, owner(blog), blog.Spec.Host)
}

// observe copies what the StatefulSet's status says into the Blog's status.
func observe(blog *Blog, set *appsv1.StatefulSet) {
	blog.Status.ReadyReplicas = set.Status.ReadyReplicas
	current := set.Status.ObservedGeneration >= set.Generation && set.Status.UpdatedReplicas == blog.Spec.Replicas
	if current && set.Status.ReadyReplicas == blog.Spec.Replicas && set.Status.Replicas == blog.Spec.Replicas {
		setCondition(blog, conditionReady, metav1.ConditionTrue, "AllReady", fmt.Sprintf("%d pods are ready", blog.Spec.Replicas))
		return
	}
	setCondition(blog, conditionReady, metav1.ConditionFalse, "Progressing", "not all pods are ready")
}

func setCondition(blog *Blog, conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&blog.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: blog.Generation,
	})
}

func hasCondition(job *batchv1.Job, conditionType batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func owner(blog *Blog) string { return blog.Namespace + "/" + blog.Name }
