// Package controller makes accounts in a database as DatabaseUser objects describe them.
package controller

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// What the operator may do; `make manifests` writes the roles. Of Secrets it needs get for the passwords, and list and
// watch for their metadata.
// +kubebuilder:rbac:groups=mygroup.handsomeguy.cn,resources=databaseusers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=mygroup.handsomeguy.cn,resources=databaseusers/status,verbs=patch
// +kubebuilder:rbac:groups=mygroup.handsomeguy.cn,resources=databaseusers/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update

const (
	// Finalizer is on every DatabaseUser before the first statement.
	Finalizer = "mygroup.handsomeguy.cn/databaseuser"

	// UserIndex is the field index under which the DatabaseUsers of a user name are found.
	UserIndex = "user"
)

// Operator makes accounts in one database.
type Operator struct {
	// Database is where. It is asked only when something has changed, or Resync is due.
	Database accounts.Database
	// Target is the value of the label "target" of the DatabaseUsers that it serves, in any case.
	Target string
	// Resync is how often an account is compared with what it should be.
	Resync time.Duration
	// Clock is the real one unless a test sets it.
	Clock clock.PassiveClock

	recorder events.EventRecorder
	checked  checked
}

// Steps are what is done for a DatabaseUser.
func (o *Operator) Steps() []reconcile.NamedStep[*userv1alpha1.DatabaseUser] {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return []reconcile.NamedStep[*userv1alpha1.DatabaseUser]{
		reconcile.Named("account", &account{Operator: o, database: checkpointed{o.Database}},
			reconcile.Finalizer(Finalizer),
			reconcile.Referencing(&corev1.Secret{}, secretOf),
			reconcile.Watching(&userv1alpha1.DatabaseUser{}, enqueueSameUser)),
	}
}

// SetupWithManager adds the controller to a manager, whose cache should be made by [Cache].
func (o *Operator) SetupWithManager(mgr ctrl.Manager) error {
	o.recorder = mgr.GetEventRecorder("databaseuser-operator")
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &userv1alpha1.DatabaseUser{}, UserIndex, IndexUsers); err != nil {
		return err
	}
	return reconcile.For(mgr, o.Steps()...).WithConditions(Conditions).WithFilter(o.Serves).Complete()
}

// Serves says whether a DatabaseUser is this operator's business: by its label, or because its status says that this
// operator made the account. Of one that is being deleted nobody but the latter is asked; if there is no account, or if it
// is given up, anybody.
func (o *Operator) Serves(u *userv1alpha1.DatabaseUser) bool {
	if u.DeletionTimestamp != nil && (u.Status.Target == "" || abandoned(u)) {
		return true
	}
	return o.made(u) || u.DeletionTimestamp == nil && o.wanted(u)
}

func (o *Operator) made(u *userv1alpha1.DatabaseUser) bool {
	return strings.EqualFold(u.Status.Target, o.Target)
}

func (o *Operator) wanted(u *userv1alpha1.DatabaseUser) bool {
	return strings.EqualFold(u.Labels[userv1alpha1.TargetLabel], o.Target)
}

func secretOf(u *userv1alpha1.DatabaseUser) []types.NamespacedName {
	if u.Spec.Password == nil {
		return nil
	}
	return []types.NamespacedName{{Name: u.Spec.Password.Name}}
}

// Cache restricts the manager's cache to some namespaces, or none for all. It is not filtered by the label: an account
// whose DatabaseUser was relabelled while the operator was down would never be dropped.
func Cache(namespaces ...string) cache.Options {
	return reconcile.CacheOptions(namespaces...)
}
