package external

import (
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reference names one thing outside of the cluster.
type Reference struct {
	// Key is the key of the thing, as [Resource.Key] or [Resource.Keys] returned it when the thing was recorded.
	// +optional
	Key string `json:"key,omitempty"`

	// ID is the name that the API gave the thing, as [Resource.Create] returned it. It is empty if the API has no names of its own.
	// +optional
	ID string `json:"id,omitempty"`

	// Token is a random text that belongs to this creation alone: for an idempotency key, or a tag of the API by which the creation is
	// found again.
	// +optional
	Token string `json:"token,omitempty"`

	// Pending is true while it is not known whether the creation had an effect.
	// +optional
	Pending bool `json:"pending,omitempty"`

	// Adopted is true if the thing existed before, and was taken over.
	// +optional
	Adopted bool `json:"adopted,omitempty"`

	// Since is when the creation was begun, or repeated after an error.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// String returns the ID. If it is empty, String returns the key, and if that is empty too, "it".
func (r Reference) String() string { return cmp.Or(r.ID, r.Key, "it") }

// Record says which things outside of the cluster belong to an object. Make it a field of the status. The zero value means that no
// thing does.
type Record struct {
	// Reference is the thing, with [Resource.Key].
	Reference `json:",inline"`

	// Things has one entry for each key that has a thing, with [Resource.Keys].
	// +optional
	Things []Reference `json:"things,omitempty"`

	// Version is the answer of [Resource.Version] at the last update or creation.
	// +optional
	Version string `json:"version,omitempty"`

	// Generation is the generation of the object at the last pass that succeeded or was refused for good.
	// +optional
	Generation int64 `json:"observedGeneration,omitempty"`

	// Issued is a random name of what [Resource.Issue] has issued last. A repetition after a crash has the same name, so that an API may take it
	// as an idempotency key.
	// +optional
	Issued string `json:"issued,omitempty"`

	// Published is a random name of the write that put the issued values into the Secret. It is empty from before the call of
	// [Resource.Issue] until the Secret is written.
	// +optional
	Published string `json:"published,omitempty"`

	// Former is what the object had under other keys and is to be deleted.
	// +optional
	Former []Reference `json:"former,omitempty"`
}

// present returns the recorded things under present keys.
func (r *Record) present() []Reference {
	if r.Reference == (Reference{}) {
		return r.Things
	}
	return append([]Reference{r.Reference}, r.Things...)
}

// all returns all recorded things. If the record is nil, it returns nothing.
func (r *Record) all() []Reference {
	if r == nil {
		return nil
	}
	return slices.Concat(r.present(), r.Former)
}

// Keys returns the keys of all recorded things, including the things that are to be deleted. Use a field index of these keys and of the
// desired keys to find the objects for [Resource.Others].
func (r *Record) Keys() []string { return keysOf(r.all()) }

// States yields the key and the state of each recorded thing, for a status that lists them. The state is "Present", "Pending" while it is
// not known whether the creation had an effect, or "Deleting" for a thing under a former key that is to be deleted. If a key is desired
// again while its former thing is to be deleted, the key occurs twice. A thing that the API refuses to create is not recorded.
func (r *Record) States() iter.Seq2[string, string] {
	return func(yield func(key, state string) bool) {
		for i, ref := range r.all() {
			state := "Present"
			switch {
			case i >= len(r.present()):
				state = "Deleting"
			case ref.Pending:
				state = "Pending"
			}
			if !yield(ref.Key, state) {
				return
			}
		}
	}
}

// forgetWritten removes what the record says about the contents of the things, so that they are written again.
func (r *Record) forgetWritten() { r.Version, r.Issued, r.Published = "", "", "" }

// DeepCopy returns a copy of the record, or nil for nil. The code that controller-gen generates for a pointer calls it.
func (r *Record) DeepCopy() *Record {
	if r == nil {
		return nil
	}
	out := new(Record)
	r.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies the record into out. The code that controller-gen generates calls it.
func (r *Record) DeepCopyInto(out *Record) {
	*out = *r
	out.Since = r.Since.DeepCopy()
	out.Things, out.Former = copyOf(r.Things), copyOf(r.Former)
}

func copyOf(references []Reference) []Reference {
	out := slices.Clone(references)
	for i := range out {
		out[i].Since = out[i].Since.DeepCopy()
	}
	return out
}
