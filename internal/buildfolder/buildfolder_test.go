package buildfolder

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // the user's cache on Linux
	t.Setenv("HOME", t.TempDir())           // and elsewhere
	folder, release, err := Open("shop")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "program"), nil, 0o600))

	other, releaseOther, err := Open("shop")
	require.NoError(t, err)
	assert.NotEqual(t, folder, other, "the folder is in use")
	releaseOther()
	assert.NoDirExists(t, other)

	release()
	again, release, err := Open("shop")
	require.NoError(t, err)
	assert.Equal(t, folder, again)
	assert.FileExists(t, filepath.Join(again, "program"), "it is kept")
	release()

	empty, release, err := OpenEmpty("shop")
	require.NoError(t, err)
	assert.Equal(t, folder, empty)
	left, err := os.ReadDir(empty)
	require.NoError(t, err)
	assert.Empty(t, left)
	release()
	assert.NoDirExists(t, empty)

	t.Setenv("XDG_CACHE_HOME", os.DevNull)
	t.Setenv("HOME", os.DevNull)
	_, _, err = Open("shop")
	assert.ErrorContains(t, err, "not a directory", "the cache cannot be written")
}
