package imports

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// raised are the modules that kstatus requires in a higher version than controller-runtime does. None belongs to Kubernetes or Prometheus:
// users would have to follow changes of their API.
var raised = []string{
	"github.com/go-openapi/jsonpointer", "github.com/go-openapi/jsonreference", "github.com/go-openapi/swag", "github.com/mailru/easyjson",
	"github.com/spf13/pflag", "golang.org/x/net", "golang.org/x/oauth2", "golang.org/x/sync", "golang.org/x/sys", "golang.org/x/term",
	"golang.org/x/text", "golang.org/x/time",
}

// TestRequirements compares go.mod with the go.mod of the controller-runtime version that it requires. go get takes the highest version
// that any module requires. So a higher version here also raises it for every user.
func TestRequirements(t *testing.T) {
	own := requirements(t, filepath.Join("..", "..", "go.mod"))
	file := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.GoMod}}", "sigs.k8s.io/controller-runtime")
	file.Dir, file.Env = filepath.Join("..", ".."), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	path, err := file.Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := requirements(t, strings.TrimSpace(string(path)))
	excused := map[string]bool{}
	for _, module := range raised {
		excused[module] = true
	}
	for module, wanted := range own {
		upstream, shared := theirs[module]
		isHigher := shared && upstream.LessThan(wanted)
		if isHigher != excused[module] {
			t.Errorf("go.mod requires %s %s, and controller-runtime requires %s: lower it, or say in raised what raises it", module, wanted, upstream)
		}
	}
}

var requirement = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

// requirements returns the versions of the modules that a go.mod requires.
func requirements(t *testing.T, file string) map[string]*version.Version {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]*version.Version{}
	for _, line := range requirement.FindAllStringSubmatch(string(content), -1) {
		versions[line[1]] = version.MustParseSemantic(line[2])
	}
	if len(versions) == 0 {
		t.Fatalf("%s requires nothing", file)
	}
	return versions
}
