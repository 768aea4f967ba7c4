package external

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// publisher writes the Secrets of [Resource.Publish].
type publisher[T client.Object] struct {
	set  *ownedresources.ChildSet[T] // applies, prunes and watches the Secret in the context; nil without Publish
	live client.Reader               // reads from the API server; nil without a manager
	last sync.Map                    // key of an object → publication

	unwritten sync.Map // key of an object → issue, whose values are in no Secret yet
}

// issue is the result of one call of [Resource.Issue].
type issue struct {
	name   string // see [Record.Issued]
	values map[string][]byte
}

// publication describes the Secret of an object that was published last. The zero value means that none was
// published.
type publication struct {
	name client.ObjectKey
	keys []string
	sum  uint64 // a hash of the values of these keys; it differs between processes
}

// desiredSecret is the key of the desired Secret in a context.
type desiredSecret struct{}

// enable creates the set of children, whose only child is the Secret. The Secret comes from an input that reads nothing from the cluster.
// So the set calls the input in each reconcile, and does not remember its values.
func (s *publisher[T]) enable() {
	desired := ownedresources.From(func(ctx context.Context, _ client.Reader, _ T) (*corev1.Secret, error) {
		secret, _ := ctx.Value(desiredSecret{}).(*corev1.Secret)
		return secret, nil
	})
	s.set = ownedresources.Ensure(ownedresources.BuildFrom(desired, func(_ T, secret *corev1.Secret) (*corev1.Secret, error) {
		return secret, nil
	}))
}

func (s *publisher[T]) watched() []client.Object {
	if s.set == nil {
		return nil
	}
	return s.set.Watched()
}

func (s *publisher[T]) setUp(mgr ctrl.Manager, b *ctrl.Builder) error {
	if s.set == nil {
		return nil
	}
	s.live = mgr.GetAPIReader()
	return s.set.Hooks().Watch(mgr, b)
}

func (s *publisher[T]) lastOf(name client.ObjectKey) publication {
	last, _ := s.last.Load(name)
	p, _ := last.(publication)
	return p
}

func (s *publisher[T]) forget(name client.ObjectKey) {
	s.last.Delete(name)
	s.unwritten.Delete(name)
}

// publishing writes the Secret of one object in one pass.
type publishing[T client.Object, S any] struct {
	secrets  *publisher[T]
	resource *Resource[T, S]
	outside  *outside[T, S]
	ledger   *ledger[T, S]
	wanted   *wanted
}

// isPublished reports whether the cache has the Secret that was published last, unchanged.
func (p publishing[T, S]) isPublished(ctx context.Context) bool {
	last := p.secrets.lastOf(client.ObjectKeyFromObject(p.outside.obj))
	if last.name.Name == "" {
		return true
	}
	secret, err := readSecret(ctx, p.outside.client, last.name)
	return err == nil && metav1.IsControlledBy(secret, p.outside.obj) && sumOf(secret, last.keys) == last.sum
}

// publish applies the Secret that Publish returns for the state that was observed last.
func (p publishing[T, S]) publish(ctx context.Context) error {
	if p.secrets.set == nil {
		return nil
	}
	var now publication
	var m mark
	secret := withoutStringData(p.resource.Publish(p.outside.obj, p.outside.seen))
	if secret != nil {
		now.name = client.ObjectKey{Namespace: cmp.Or(secret.Namespace, p.outside.obj.GetNamespace()), Name: secret.Name}
		var err error
		if m, err = p.fill(ctx, secret, now.name); err != nil {
			return err
		}
		now.keys = slices.Sorted(maps.Keys(secret.Data))
		now.sum = sumOf(secret, now.keys)
	}
	p.secrets.last.Store(client.ObjectKeyFromObject(p.outside.obj), now) // before the write, because its answer may be lost
	if err := p.applySecret(ctx, secret); err != nil {
		return err
	}
	p.secrets.unwritten.Delete(client.ObjectKeyFromObject(p.outside.obj))
	if p.ledger.record.Published = m.published; m.published == "" { // the Secret has no issued values any more
		p.ledger.record.Issued = ""
	}
	return nil
}

func (p publishing[T, S]) applySecret(ctx context.Context, secret *corev1.Secret) error {
	return p.secrets.set.Reconcile(context.WithValue(ctx, desiredSecret{}, secret), p.outside.client, p.outside.obj)
}

// fill sets the values that Publish has left empty. If the live Secret has the values that Issue returned last for this thing, it uses
// these. Otherwise it issues new ones. It returns the mark of the values, which is an annotation of the Secret. If Publish left no value
// empty, the mark is the zero value.
func (p publishing[T, S]) fill(ctx context.Context, secret *corev1.Secret, name client.ObjectKey) (m mark, err error) {
	var keys []string
	for key, value := range secret.Data {
		if len(value) == 0 {
			keys = append(keys, key)
		}
	}
	if p.resource.Issue == nil || len(keys) == 0 {
		return m, nil
	}
	slices.Sort(keys)
	live, isKept, err := p.readIssued(ctx, name, keys)
	if err != nil {
		return m, err
	}
	var values map[string][]byte
	switch {
	case isKept:
		values, m = live.Data, markOf(live)
	case live != nil && (!metav1.IsControlledBy(live, p.outside.obj) || live.DeletionTimestamp != nil): // the Secret cannot be written now, so nothing is issued
		if err := p.applySecret(ctx, withoutKeys(secret, keys)); err != nil {
			return m, err
		}
		return m, reconcile.Wait(reasonPublishing, firstLook, "Secret %s has just become free", name.Name)
	case p.wanted.observesOnly():
		return m, reconcile.Wait(reasonPublishing, p.wanted.every, "Secret %s lacks what is not issued, since the object only observes", name.Name)
	default:
		if values, err = p.issue(ctx); err != nil {
			return m, err
		}
		m.published = rand.Text()
	}
	for _, key := range keys {
		if secret.Data[key] = values[key]; len(values[key]) == 0 {
			return m, reconcile.Stalled(reasonPublishing, fmt.Errorf("nothing was issued for key %s of Secret %s: return it in Issue, or leave the key out in Publish", key, name.Name))
		}
	}
	if !isKept {
		p.secrets.unwritten.Store(client.ObjectKeyFromObject(p.outside.obj), issue{p.ledger.record.Issued, values})
	}
	m.sum = p.ledger.record.sumOf(secret, keys)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, record.Issued, m.String())
	return m, nil
}

// readIssued returns the live Secret, or nil if it does not exist. isKept reports whether it has the values that Issue returned last for
// this thing. If the Secret in the cache has other values, the cache may be behind, so readIssued reads the Secret from the API server.
func (p publishing[T, S]) readIssued(ctx context.Context, name client.ObjectKey, keys []string) (live *corev1.Secret, isKept bool, err error) {
	_, isRecorded := p.ledger.get(p.ledger.keys[0]) // values that were issued for another thing are not used
	for _, reader := range []client.Reader{p.outside.client, p.secrets.live} {
		if reader == nil {
			continue
		}
		live, err = readSecret(ctx, reader, name)
		switch {
		case apierrors.IsNotFound(err):
			live = nil
		case err != nil:
			return nil, false, err
		case isRecorded && metav1.IsControlledBy(live, p.outside.obj) && p.ledger.record.hasIssued(live, keys):
			return live, true, nil
		}
	}
	return live, false, nil
}

// issue issues new values. Before the call, it writes a name of this issue into the record. Until a Secret has the values, a repetition
// uses the same name, so the status need not be written again. If the values of an earlier call could not be published, issue returns them
// from memory.
func (p publishing[T, S]) issue(ctx context.Context) (values map[string][]byte, err error) {
	r := p.ledger.record
	if !r.isIssuing() {
		r.Issued, r.Published = rand.Text(), ""
	}
	if last, _ := p.secrets.unwritten.Load(client.ObjectKeyFromObject(p.outside.obj)); last != nil && last.(issue).name == r.Issued {
		return last.(issue).values, nil
	}
	if err := p.ledger.checkpoint(ctx); err != nil {
		return nil, err
	}
	ref, _ := p.ledger.get(p.ledger.keys[0])
	return p.outside.issue(ctx, ref)
}

func readSecret(ctx context.Context, c client.Reader, name client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, c.Get(ctx, name, secret)
}

// withoutStringData returns a copy of the Secret in which all values are in data, as the API server stores them.
func withoutStringData(secret *corev1.Secret) *corev1.Secret {
	if secret == nil {
		return nil
	}
	secret = secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	return secret
}

func withoutKeys(secret *corev1.Secret, keys []string) *corev1.Secret {
	secret = secret.DeepCopy()
	for _, key := range keys {
		delete(secret.Data, key)
	}
	return secret
}

var sumSeed = maphash.MakeSeed()

// sumOf returns a hash of the values of these keys.
func sumOf(secret *corev1.Secret, keys []string) uint64 {
	var h maphash.Hash
	h.SetSeed(sumSeed)
	for _, key := range keys {
		maphash.WriteComparable(&h, [2]string{key, string(secret.Data[key])})
	}
	return h.Sum64()
}
