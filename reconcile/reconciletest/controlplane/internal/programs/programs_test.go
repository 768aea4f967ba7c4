package programs

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEnsureUnknownProgram(t *testing.T) {
	_, err := Ensure(t.Context(), "", "kubelet")
	assert.EqualError(t, err, `unknown program "kubelet": choose from etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, kubectl`)
}
