package ownedresources_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The compiler refuses a wrong type of the owner or of a child. In the file that is compiled here, the comment above
// each mistake has a part of the compiler's message.
func TestMistakesThatDoNotCompile(t *testing.T) {
	const file = "testdata/mistakes/mistakes.go"
	output, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "./testdata/mistakes").CombinedOutput()
	require.Error(t, err, "it compiles")
	messages := map[int]string{} // by line
	for _, message := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(file)+`:(\d+):\d+: (.*)$`).FindAllStringSubmatch(string(output), -1) {
		line, err := strconv.Atoi(message[1])
		require.NoError(t, err)
		messages[line] = message[2]
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		if want, above := strings.CutPrefix(line, "\t// "); above {
			require.Contains(t, messages[i+2], want, lines[i+1])
			delete(messages, i+2)
		}
	}
	require.Empty(t, messages, "only what a comment announces is a mistake")
}
