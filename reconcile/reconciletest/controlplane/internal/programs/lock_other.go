//go:build !unix

package programs

import (
	"context"
	"errors"
)

// lock fails: the control plane's programs run on Linux and macOS only.
func lock(context.Context, string) (unlock func(), err error) {
	return nil, errors.New("a control plane needs Linux or macOS; on Windows use WSL")
}
