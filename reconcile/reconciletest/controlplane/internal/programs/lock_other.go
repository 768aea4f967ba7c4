//go:build !unix

package programs

import (
	"context"
	"errors"
)

// lock returns an error: the control plane's programs run only on Linux and macOS.
func lock(context.Context, string) (unlock func(), err error) {
	return nil, errors.New("a control plane needs Linux or macOS; on Windows use WSL")
}
