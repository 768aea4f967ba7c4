package memoryserver

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/opblocks/opblocks/internal/memoryserver/crd"
)

type settings struct {
	definitions []*crd.Definition
	earlier     *Server
}

// Option is [CRD], [CRDs] or [Following].
type Option func(*settings) error

// CRDs adds the custom resource definitions in YAML or JSON files. If a path is a folder, CRDs reads the files directly
// in it. Other documents are ignored. It is an error if a path has no custom resource definition.
func CRDs(paths ...string) Option {
	return func(s *settings) error {
		for _, path := range paths {
			definitions, err := crd.Read(path)
			if err != nil {
				return err
			}
			s.definitions = append(s.definitions, definitions...)
		}
		return nil
	}
}

// CRD adds custom resource definitions that the test builds itself.
func CRD(definitions ...*apiextensionsv1.CustomResourceDefinition) Option {
	return func(s *settings) error {
		for _, definition := range definitions {
			content, err := json.Marshal(definition)
			if err != nil {
				return fmt.Errorf("custom resource definition %s: %w", definition.Name, err)
			}
			parsed, err := crd.Parse(content)
			if err != nil {
				return fmt.Errorf("custom resource definition %s: %w", definition.Name, err)
			}
			s.definitions = append(s.definitions, parsed...)
		}
		return nil
	}
}
