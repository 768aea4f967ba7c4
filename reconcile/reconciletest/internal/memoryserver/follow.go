package memoryserver

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// Following makes the server reuse results of an earlier server, to which nobody sends requests any more. Both servers must have the same
// kinds and the same scheme. Clients see no difference. A result is reused only if the request, its time, the version of the object and the
// revision are the same. The result of a creation is reused only as long as everything that both servers have stored is equal. So if
// several runs of a simulation begin in the same way, their beginning is computed once.
func Following(earlier *Server) Option {
	return func(s *settings) error {
		s.earlier = earlier
		return nil
	}
}

// writeRequest is a creation, an update, a patch or an apply. It has everything on which the result depends, except the present version of
// the object.
type writeRequest struct {
	kind        *kind.Kind // in the version of the request
	subresource string
	patch       types.PatchType // "": a creation or an update
	content     string          // the content of the patch
	options     writeOptions
	second      int64         // when the server received it; the API has times in whole seconds
	sent        client.Object // the object that a creation or an update sent, with defaults
}

// newPatch returns the request of a patch or an apply.
func newPatch(k *kind.Kind, subresource string, patch types.PatchType, content []byte, options writeOptions) *writeRequest {
	return &writeRequest{kind: k, subresource: subresource, patch: patch, content: string(content), options: options, second: now().Unix()}
}

// newObjectRequest returns the request of a creation or an update. The caller may change the object afterwards. If the server has no
// earlier server, the request gets a copy of the object, since a later server may reuse this one's results. Otherwise the object is only
// compared, before the caller changes it.
func (s *store) newObjectRequest(k *kind.Kind, subresource string, sent client.Object, options writeOptions) *writeRequest {
	if s.earlier == nil {
		sent = sent.DeepCopyObject().(client.Object)
	}
	return &writeRequest{kind: k, subresource: subresource, options: options, second: now().Unix(), sent: sent}
}

func (r *writeRequest) equals(other *writeRequest) bool {
	return r.kind == other.kind && r.subresource == other.subresource && r.patch == other.patch && r.content == other.content &&
		r.options == other.options && r.second == other.second && reflect.DeepEqual(r.sent, other.sent)
}

// earlierChange returns the change at the next revision of the earlier server. It returns nil if there is none.
func (s *store) earlierChange() *change {
	if s.earlier == nil || len(s.history) >= len(s.earlier.history) {
		return nil
	}
	return s.earlier.history[len(s.history)]
}

// Repeats reports whether the server reuses the results of an earlier one, and everything that was written so far equals what that server
// had at the same revision.
func (s *Server) Repeats() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.earlier != nil && !s.store.differs
}

// isEarlier reports whether a change equals the change at the next revision of the earlier server.
func (s *store) isEarlier(c *change) bool {
	earlier := s.earlierChange()
	if earlier == nil || earlier.kind != c.kind || earlier.key != c.key {
		return false
	}
	if c.after.object == nil {
		return earlier.after.object == nil
	}
	return c.after.origin == earlier.after
}

// isEarlierSkip reports whether the earlier server skipped the next revision.
func (s *store) isEarlierSkip() bool {
	return s.earlier != nil && len(s.history) < len(s.earlier.history) && s.earlier.history[len(s.history)] == nil
}

// earlierResult returns the version that the same request has led to on the earlier server. It returns nil if there is none. If the server
// allocates values of the kind, such as addresses, they also depend on other objects. Then everything stored must be equal.
func (s *store) earlierResult(k *kind.Kind, current *version, sent *writeRequest) *version {
	c := s.earlierChange()
	if c == nil || sent == nil || k.Allocates && s.differs || current.origin == nil || c.before != current.origin ||
		c.after.object == nil || c.after.request == nil || !sent.equals(c.after.request) {
		return nil
	}
	return c.after
}

// earlierCreation returns the version that the same creation has led to on the earlier server. It returns nil if there is none. A creation
// depends on everything that is stored, so all of it must be equal. A creation with a generated name is never reused: it has no key yet,
// and the name also depends on creations that failed.
func (s *store) earlierCreation(k *kind.Kind, key client.ObjectKey, sent *writeRequest) *version {
	c := s.earlierChange()
	if c == nil || sent == nil || s.differs || c.kind != k.Storage() || c.key != key || c.before != nil || c.after.request == nil || !sent.equals(c.after.request) {
		return nil
	}
	return c.after
}

// reuse stores a copy of a version of the earlier server under the next revision. It returns the object that clients read.
func (s *store) reuse(k *kind.Kind, key client.ObjectKey, earlier *version) client.Object {
	made := &version{revision: earlier.revision, origin: earlier}
	made.object, made.stored = earlier.copied()
	s.put(k, key, made)
	return made.object
}

// copied returns copies of the object that clients read and of the stored object.
func (v *version) copied() (object, stored client.Object) {
	object = v.object.DeepCopyObject().(client.Object)
	if v.stored == v.object {
		return object, object
	}
	return object, v.stored.DeepCopyObject().(client.Object)
}

// originOf returns the version of the earlier server with the same revision if it is equal. Otherwise it returns nil.
func (s *store) originOf(made *version, k *kind.Kind, key client.ObjectKey) *version {
	c := s.earlierChange()
	if c == nil || c.kind != k.Storage() || c.key != key || !reflect.DeepEqual(c.after.stored, made.stored) {
		return nil
	}
	if made.stored != made.object && !reflect.DeepEqual(c.after.object, made.object) {
		return nil
	}
	return c.after
}

// earlierView returns a copy of the decoded object that the earlier server has for an equal version. It returns nil if there is none. The
// object is in the version of the kind and in the Go type as.
func (v *version) earlierView(k *kind.Kind, as reflect.Type) client.Object {
	if v.origin == nil {
		return nil
	}
	if found := v.origin.knownView(k, as); found != nil {
		return found.DeepCopyObject().(client.Object)
	}
	return nil
}
