// Package controller reconciles Topic objects: it keeps a topic on a queue server as each describes it.
package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	queuev1alpha1 "github.com/opblocks/opblocks/examples/topic/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/topic/queue"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// The operator's permissions, from which `make manifests` generates the roles. It gets Secrets to read tokens, and lists and watches only
// their metadata.
// +kubebuilder:rbac:groups=queue.example.com,resources=topics,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=queue.example.com,resources=topics/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create

// Finalizer is on every Topic before the first request that changes the server.
const Finalizer = "queue.example.com/topic"

// Operator keeps topics on one queue server.
type Operator struct {
	Server *queue.Server
}

// SetupWithManager adds the controller to a manager. The manager's cache options should come from [Cache].
func (o *Operator) SetupWithManager(mgr ctrl.Manager) error {
	return reconcile.For(mgr,
		reconcile.Named("topic", external.New(o.resource())).Finalizer(Finalizer).Reads(&corev1.Secret{}, tokenSecret),
	).Complete()
}

// Cache returns cache options for some namespaces, or for all if none is given.
func Cache(namespaces ...string) cache.Options { return reconcile.CacheOptions(namespaces...) }

// resource says how the server is called. The step decides when: nothing is called while all is as desired, but for one look every ten minutes.
func (o *Operator) resource() external.Resource[*queuev1alpha1.Topic, queue.Settings] {
	return external.Resource[*queuev1alpha1.Topic, queue.Settings]{
		Record: func(t *queuev1alpha1.Topic) *external.Record { return &t.Status.External },
		Key:    func(t *queuev1alpha1.Topic) string { return t.Namespace + "." + t.Name },
		Desired: func(_ context.Context, _ client.Client, t *queuev1alpha1.Topic) (queue.Settings, error) {
			return queue.Settings{Owner: ownerOf(t), Partitions: t.Spec.Partitions, RetentionHours: t.Spec.RetentionHours}, nil
		},
		Observe: func(ctx context.Context, c client.Client, t *queuev1alpha1.Topic, ref external.Reference) (found queue.Settings, err error) {
			server, err := o.connect(ctx, c, t)
			if err == nil {
				found, err = server.Get(ctx, ref.Key)
			}
			return found, err
		},
		Differs: func(_ external.Reference, observed, desired queue.Settings) bool { return observed != desired },
		Create: func(ctx context.Context, c client.Client, t *queuev1alpha1.Topic, ref external.Reference, desired queue.Settings) (string, error) {
			server, err := o.connect(ctx, c, t)
			if err == nil {
				err = server.Create(ctx, ref.Key, desired)
			}
			return "", err
		},
		Update: func(ctx context.Context, c client.Client, t *queuev1alpha1.Topic, ref external.Reference, _, desired queue.Settings) error {
			server, err := o.connect(ctx, c, t)
			if err == nil {
				err = server.Update(ctx, ref.Key, desired)
			}
			return err
		},
		Delete: func(ctx context.Context, c client.Client, t *queuev1alpha1.Topic, ref external.Reference) error {
			server, err := o.connect(ctx, c, t)
			if err == nil {
				err = server.Delete(ctx, ref.Key)
			}
			return err
		},
		IsOurs: func(t *queuev1alpha1.Topic, _ external.Reference, observed queue.Settings) bool {
			return observed.Owner == ownerOf(t)
		},
		Retain: func(t *queuev1alpha1.Topic) bool { return t.Spec.DeletionPolicy == queuev1alpha1.DeletionRetain },
	}
}

// connect returns a client of the server with the token of a Topic, or a wait if its Secret or the key is missing.
func (o *Operator) connect(ctx context.Context, c client.Client, t *queuev1alpha1.Topic) (*queue.Client, error) {
	token, _, err := secrets.Read(ctx, c, t.Namespace, t.Spec.Token)
	if err != nil {
		return nil, err
	}
	return o.Server.Connect(token)
}

// ownerOf returns the mark of what a Topic has created. Another cluster may use the server too, and have a Topic of the same name.
func ownerOf(t *queuev1alpha1.Topic) string { return string(t.UID) }

// tokenSecret returns the Secret that a Topic names. Its changes trigger a pass over that Topic.
func tokenSecret(t *queuev1alpha1.Topic) []types.NamespacedName {
	return []types.NamespacedName{{Name: t.Spec.Token.Name}}
}
