// Package controller reconciles DatabaseUser objects: it keeps accounts in a database as they describe them.
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
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/predicates"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// The operator's permissions, from which `make manifests` generates the roles. It gets Secrets to read passwords, and lists and
// watches only their metadata.
// +kubebuilder:rbac:groups=mygroup.handsomeguy.cn,resources=databaseusers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=mygroup.handsomeguy.cn,resources=databaseusers/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create

const (
	// Finalizer is on every DatabaseUser before the first statement.
	Finalizer = "mygroup.handsomeguy.cn/databaseuser"

	// UserIndex is the field index that finds the DatabaseUsers of a user name.
	UserIndex = "user"
)

// Operator keeps the accounts in one database.
type Operator struct {
	// Database holds the accounts. It is called only when something has changed, or when a resync is due.
	Database accounts.Database
	// Target is the value of the label "target" of the DatabaseUsers to serve, ignoring case.
	Target string
	// Resync is the interval at which accounts are compared with the spec and repaired.
	Resync time.Duration
	// Clock is the real clock, unless a test sets it.
	Clock clock.PassiveClock

	recorder     events.EventRecorder
	fingerprints fingerprints
	progresses   progresses
}

// workers is the number of passes at a time. A pass that waits for the database does not keep those waiting that do not need
// it. The client of the database has as many connections.
const workers = 4

// turnCalls and turnTime bound what one pass does: a DatabaseUser has up to 2,048 grants, and others wait for a worker.
const (
	turnCalls = 100
	turnTime  = 200 * time.Millisecond
)

// Steps returns the steps of a pass over a DatabaseUser.
func (o *Operator) Steps() []reconcile.NamedStep[*userv1alpha1.DatabaseUser] {
	step := &account{external.New(o.resource()), o}
	return []reconcile.NamedStep[*userv1alpha1.DatabaseUser]{
		reconcile.Named("account", step, reconcile.Watching(&userv1alpha1.DatabaseUser{}, step.Waiting)).
			Finalizer(Finalizer).
			Reads(&corev1.Secret{}, secretOf),
	}
}

// SetupWithManager adds the controller to a manager. The manager's cache options should come from [Cache].
func (o *Operator) SetupWithManager(mgr ctrl.Manager) error {
	o.recorder = mgr.GetEventRecorder("databaseuser-operator")
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &userv1alpha1.DatabaseUser{}, UserIndex, IndexUsers); err != nil {
		return err
	}
	return reconcile.For(mgr, o.Steps()...).WithConditions(Conditions).WithPredicates(o.events()).WithFilter(o.Serves).WithTurns(turnCalls, turnTime).
		WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: workers}).Complete()
}

// events passes events of the DatabaseUsers whose label names this operator's target, as the article's operator does, also if
// only the old or only the new object has it. The label is not all that counts: an account that the status records as this
// operator's has to be dropped although the label was changed while the operator was down, and any operator may finish a
// deletion; [Operator.Serves] decides then. A deletion always passes: what is remembered of the object has to be forgotten.
func (o *Operator) events() predicate.Predicate {
	return predicate.Or(
		predicates.Label(userv1alpha1.TargetLabel).EqualsFold(o.Target),
		predicates.Matching(func(u *userv1alpha1.DatabaseUser) bool { return o.isRecorded(u) || u.DeletionTimestamp != nil }),
		predicates.DeletionStarted(),
	)
}

// Cache returns cache options for some namespaces, or for all if none is given. The cache is not filtered by the label: the
// account of a DatabaseUser that was relabelled while the operator was down would never be dropped.
func Cache(namespaces ...string) cache.Options {
	return reconcile.CacheOptions(namespaces...)
}

// Serves reports whether this operator reconciles a DatabaseUser: if its label or its status names this operator's target.
// While a DatabaseUser is being deleted, only the status counts; without a recorded account, or if the account is abandoned,
// any operator may finish the deletion.
func (o *Operator) Serves(u *userv1alpha1.DatabaseUser) bool {
	if u.DeletionTimestamp != nil && (u.Status.Target == "" || abandoned(u)) {
		return true
	}
	return o.isRecorded(u) || u.DeletionTimestamp == nil && o.isTarget(u)
}

// isRecorded reports whether the status names this operator's target.
func (o *Operator) isRecorded(u *userv1alpha1.DatabaseUser) bool {
	return strings.EqualFold(u.Status.Target, o.Target)
}

// isTarget reports whether the label names this operator's target.
func (o *Operator) isTarget(u *userv1alpha1.DatabaseUser) bool {
	return strings.EqualFold(u.Labels[userv1alpha1.TargetLabel], o.Target)
}

func secretOf(u *userv1alpha1.DatabaseUser) []types.NamespacedName {
	if u.Spec.Password == nil {
		return nil
	}
	return []types.NamespacedName{{Name: u.Spec.Password.Name}}
}
