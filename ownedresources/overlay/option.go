package overlay

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Option is an option of [PodTemplate.Apply].
type Option func(*settings)

type settings struct {
	path      *field.Path
	protected []protectedPath
	err       error // the error of the first invalid path
}

func newSettings(options []Option) (settings, error) {
	if len(options) == 0 {
		return settings{}, nil
	}
	return applyOptions(options)
}

// applyOptions is a separate function, so that a call without options allocates nothing.
func applyOptions(options []Option) (settings, error) {
	var s settings
	for _, option := range options {
		option(&s)
	}
	return s, s.err
}

func (s *settings) root() *field.Path {
	if s.path == nil {
		return field.NewPath("spec", "podTemplate")
	}
	return s.path
}

// At sets the path of the patch in the custom resource. The paths in errors begin with it. The default is
// spec.podTemplate.
func At(path *field.Path) Option {
	return func(s *settings) { s.path = path }
}
