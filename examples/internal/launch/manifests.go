package launch

import (
	"os"
	"path/filepath"
)

// Manifests returns the overlay of an example's folder config with all that runs without cert-manager: default, or without-conversion if the
// example has the conversion of a CRD in default.
func Manifests(config string) string {
	if folder := filepath.Join(config, "without-conversion"); isFolder(folder) {
		return folder
	}
	return filepath.Join(config, "default")
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
