package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SourceEdit is a change of a source file, for a program of another version. Old must be in the file once.
type SourceEdit struct{ File, Old, New string }

// Overlay writes files to a folder with which go build -overlay compiles a program of another version, and returns the path for -overlay.
// The source files themselves do not change.
func Overlay(folder string, edits ...SourceEdit) (path string, err error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, e := range edits {
		file, err := filepath.Abs(e.File)
		if err != nil {
			return "", err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(source), e.Old); n != 1 {
			return "", fmt.Errorf("%q is %d times in %s, want once", e.Old, n, e.File)
		}
		edited := filepath.Join(folder, filepath.Base(file))
		if err := os.WriteFile(edited, []byte(strings.Replace(string(source), e.Old, e.New, 1)), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[file] = edited
	}
	encoded, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, encoded, 0o600)
}
