package finalizers

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ErrInvalidName says that a name cannot be that of an operator's finalizer: it has to be a domain, a slash, and a name of
// at most 63 letters, digits, "-", "_" and ".", such as "example.com/account". The API server accepts names without
// a domain on custom resources, but these are Kubernetes' own ("orphan", "foregroundDeletion").
var ErrInvalidName = errors.New("invalid finalizer")

func validate(names []string) error {
	for _, name := range names {
		faults := validation.IsQualifiedName(name)
		if len(faults) == 0 && !strings.Contains(name, "/") {
			faults = []string{`a domain of yours must stand before it, as in "example.com/account"`}
		}
		if len(faults) > 0 {
			return fmt.Errorf("%w %q: %s", ErrInvalidName, name, strings.Join(faults, "; "))
		}
	}
	return nil
}
