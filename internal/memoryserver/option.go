package memoryserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

type settings struct {
	definitions []*definition
}

// Option says what a server has beyond the built-in kinds.
type Option func(*settings) error

// CRDs adds the custom resource definitions of YAML or JSON files. Of a folder it takes the files
// directly in it; documents that are no custom resource definitions are passed over.
func CRDs(paths ...string) Option {
	return func(s *settings) error {
		for _, path := range paths {
			files, err := crdFiles(path)
			if err != nil {
				return fmt.Errorf("custom resource definitions: %w", err)
			}
			found := 0
			for _, file := range files {
				definitions, err := parseFile(file)
				if err != nil {
					return fmt.Errorf("custom resource definitions: %w", err)
				}
				s.definitions = append(s.definitions, definitions...)
				found += len(definitions)
			}
			if found == 0 {
				return fmt.Errorf("no custom resource definition in %s: name the folder or file that the generator writes, relative to the test", path)
			}
		}
		return nil
	}
}

// CRD adds custom resource definitions.
func CRD(crds ...*apiextensionsv1.CustomResourceDefinition) Option {
	return func(s *settings) error {
		for _, crd := range crds {
			content, err := json.Marshal(crd)
			if err != nil {
				return fmt.Errorf("custom resource definition %s: %w", crd.Name, err)
			}
			definitions, err := parseContent(content)
			if err != nil {
				return fmt.Errorf("custom resource definition %s: %w", crd.Name, err)
			}
			s.definitions = append(s.definitions, definitions...)
		}
		return nil
	}
}

func crdFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) && !entry.IsDir() {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// fileVersion tells that a file is still the one that was read.
type fileVersion struct {
	path     string
	size     int64
	modified time.Time
}

var filesRead sync.Map // fileVersion to []*definition

// parseFile reads a file once per process, as long as it stays the same.
func parseFile(path string) ([]*definition, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	version := fileVersion{path, info.Size(), info.ModTime()}
	if absolute, err := filepath.Abs(path); err == nil {
		version.path = absolute
	}
	if read, done := filesRead.Load(version); done {
		return read.([]*definition), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	definitions, err := parseContent(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	filesRead.Store(version, definitions)
	return definitions, nil
}
