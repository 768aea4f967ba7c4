//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKeptPrograms checks what an instruction that compiles makes of the program of an earlier run.
func TestKeptPrograms(t *testing.T) {
	tests := map[string]struct {
		reason, instruction string
		want                string // the content of the program, "" if there is none
	}{
		"UpToDate":   {"go build sets the time of a program that it does not link again", "RUN touch /app && : -o /app", "earlier"},
		"Linked":     {"it writes another program", "RUN echo new > /app && : -o /app", "new\n"},
		"Elsewhere":  {"it builds none at this path", "RUN touch /other && : -o /app", ""},
		"NotInPlace": {"another path is another program", "RUN touch /other && : -o /other", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &stage{image: image{root: t.TempDir()}, workdir: "/", programs: t.TempDir()}
			require.NoError(t, os.WriteFile(filepath.Join(s.programs, "app"), []byte("earlier"), 0o755))
			(&dockerfile{stages: []*stage{s}}).compile(t, tc.instruction)
			program := filepath.Join(s.root, "app")
			if tc.want == "" {
				assert.NoFileExists(t, program, tc.reason)
				return
			}
			for _, file := range []string{program, filepath.Join(s.programs, "app")} {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.Equal(t, tc.want, string(text), tc.reason)
			}
		})
	}
}
