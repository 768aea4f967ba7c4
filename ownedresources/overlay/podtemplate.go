package overlay

import (
	"bytes"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodTemplate is a user's strategic merge patch of a pod template, as raw JSON. It is the type of a field of a custom
// resource:
//
//	// PodTemplate is merged into the template of the pods.
//	// +optional
//	PodTemplate overlay.PodTemplate `json:"podTemplate,omitzero"`
//
// controller-gen generates a schema of two lines for it. The API server then keeps the patch unchanged, and only checks that it is an
// object. [PodTemplate.Apply] checks the rest. A pointer works too, with omitempty.
//
// The zero value, null and {} are patches that change nothing.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type PodTemplate struct {
	// Raw is the patch, in JSON. Its bytes are kept unchanged.
	Raw []byte `json:"-"`
}

// MaxSize is the largest size of a patch, in bytes. The time of a merge grows with the square of the number of list items,
// and a patch of this size takes at most about half a second.
const MaxSize = 64 << 10

// Apply returns base with the patch merged into it, as the API server merges a strategic merge patch, with the differences that the page
// docs/overlay.md lists. It does not change base. Without a patch it returns base itself, and allocates nothing; otherwise the result shares no memory with base.
// Equal arguments give equal results, down to the order of all lists.
//
// The labels that selector names cannot be changed, since the API server refuses a workload whose pods do not match its
// selector. Pass the selector of the workload. A nil selector protects no labels. [Protect] protects more. A nil
// PodTemplate holds no patch.
//
// A patch that the user has to correct is an [*InvalidError], which names each wrong field. Any other error is a mistake in
// the program: a path of [Protect] that does not exist, or a base with an item that lacks its key, such as an image pull
// secret without a name.
func (p *PodTemplate) Apply(base corev1.PodTemplateSpec, selector *metav1.LabelSelector, options ...Option) (corev1.PodTemplateSpec, error) {
	settings, err := newSettings(options)
	switch {
	case err != nil:
		return corev1.PodTemplateSpec{}, err
	case p.isEmpty():
		return base, nil
	}
	return p.apply(base, selector, settings)
}

// apply is a separate function, so that Apply does not move base to the heap if it has no patch.
func (p *PodTemplate) apply(base corev1.PodTemplateSpec, selector *metav1.LabelSelector, settings settings) (corev1.PodTemplateSpec, error) {
	root := settings.root()
	patch, invalid := p.parse(root)
	if len(invalid) > 0 {
		return corev1.PodTemplateSpec{}, &InvalidError{Errors: invalid}
	}
	merged, err := merge(&base, patch)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	if invalid := checkResult(root, &base, merged, selector, settings.protected); len(invalid) > 0 {
		return corev1.PodTemplateSpec{}, &InvalidError{Errors: invalid}
	}
	return *merged, nil
}

// isEmpty reports whether the patch changes nothing. It does not parse the patch, so it may return false for an empty
// object with spaces inside.
func (p *PodTemplate) isEmpty() bool {
	if p == nil {
		return true
	}
	switch b := bytes.TrimSpace(p.Raw); string(b) {
	case "", "null", "{}":
		return true
	}
	return false
}

// MarshalJSON returns the patch itself, and {} for the zero value, since the schema of the field refuses null.
func (p PodTemplate) MarshalJSON() ([]byte, error) {
	if len(p.Raw) == 0 {
		return []byte("{}"), nil
	}
	return p.Raw, nil
}

// UnmarshalJSON keeps a copy of the JSON, or nothing for null. It accepts JSON that is not a valid patch: otherwise
// the whole object could not be read. [PodTemplate.Apply] and [PodTemplate.Validate] return an error for such a
// patch.
func (p *PodTemplate) UnmarshalJSON(b []byte) error {
	if p == nil {
		return errors.New("overlay.PodTemplate: UnmarshalJSON on nil pointer")
	}
	if string(b) == "null" {
		p.Raw = nil
		return nil
	}
	p.Raw = bytes.Clone(b)
	return nil
}

// DeepCopy returns a copy of the patch, or nil for nil.
func (p *PodTemplate) DeepCopy() *PodTemplate {
	if p == nil {
		return nil
	}
	return &PodTemplate{Raw: bytes.Clone(p.Raw)}
}

// DeepCopyInto writes a copy of the patch into out.
func (p *PodTemplate) DeepCopyInto(out *PodTemplate) { out.Raw = bytes.Clone(p.Raw) }
