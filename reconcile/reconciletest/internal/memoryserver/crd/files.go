package crd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Read returns the custom resource definitions in a file. If path is a folder, it reads the files with the endings .yaml, .yml and .json
// directly in it. If there are none, the error says what to do.
func Read(path string) ([]*Definition, error) {
	files, err := filesIn(path)
	if err != nil {
		return nil, fmt.Errorf("custom resource definitions: %w", err)
	}
	var found []*Definition
	for _, file := range files {
		definitions, err := readFile(file)
		if err != nil {
			return nil, fmt.Errorf("custom resource definitions: %w", err)
		}
		found = append(found, definitions...)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no custom resource definition in %s: name the folder or file that the generator writes, relative to the test", path)
	}
	return found, nil
}

func filesIn(path string) ([]string, error) {
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

// fileVersion identifies the content of a file.
type fileVersion struct {
	path     string
	size     int64
	modified time.Time
}

var filesRead sync.Map // fileVersion to []*Definition

// readFile parses a file. If its size and time of change are the same as before, it returns the earlier result.
func readFile(path string) ([]*Definition, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	version := fileVersion{path, info.Size(), info.ModTime()}
	if absolute, err := filepath.Abs(path); err == nil {
		version.path = absolute
	}
	if read, done := filesRead.Load(version); done {
		return read.([]*Definition), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	definitions, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	filesRead.Store(version, definitions)
	return definitions, nil
}
