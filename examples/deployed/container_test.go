//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// container is a pod's only container, which runs as a process of this machine. It has what a kubelet and a container runtime
// provide: the files of the image, mounted volumes, environment, arguments, user, a root folder that it cannot write to, and
// probes. Its network is not its own: where it listens on all addresses of the pod, it listens on an address of 127.0.0.0/8.
//
// Only root may change the root folder and the user. Without that, the process gets a kubeconfig instead of the mounted token,
// and paths of this machine.
type container struct {
	*corev1.Container
	pod     *corev1.Pod
	root    string // folder with its files
	files   string // description of the files before the start
	address string // the address of the pod
	log     string // file
	process *supervisor.Process
}

var (
	isolated = os.Geteuid() == 0 && runtime.GOOS == "linux"
	started  atomic.Int32 // containers so far
)

// run starts the container of a pod. It sees the API server at a port of this machine.
func (n *node) run(t *testing.T, i *image, pod *corev1.Pod, port string) *container {
	t.Helper()
	require.Len(t, pod.Spec.Containers, 1)
	number := started.Add(1)
	c := &container{Container: &pod.Spec.Containers[0], pod: pod, root: t.TempDir(), address: "127.0.0.1"}
	if runtime.GOOS == "linux" { // elsewhere other addresses have to be configured first
		c.address = fmt.Sprintf("127.77.%d.%d", number/256, number%256)
	}
	linkFiles(t, i.root, c.root)
	for _, m := range c.VolumeMounts {
		n.mount(t, pod, m.Name, filepath.Join(c.root, m.MountPath))
	}
	c.files = c.describeFiles(t)
	env := append([]string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + port, "HOSTNAME=" + pod.Name}, i.env...)
	for _, variable := range c.Env {
		env = append(env, variable.Name+"="+c.value(t, variable, env))
	}
	command := append(slices.Clone(i.entrypoint), c.Args...)
	require.Empty(t, c.Command, "the entrypoint of the image counts")
	for a := range command {
		command[a] = strings.Replace(expand(command[a], env), "address=:", "address="+c.address+":", 1)
	}

	name := fmt.Sprintf("%s-%d", pod.Name, number)
	c.log = filepath.Join(filepath.Dir(n.cp.Kubeconfig()), name+".log")
	command = c.isolate(t, i, command, port)
	var err error
	c.process, err = n.cp.Run(name, "/usr/bin/env", slices.Concat([]string{"-i"}, env, command)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s:\n%s", name, c.process.Tail())
		}
		if c.process.Err() == nil {
			assert.NoError(t, c.process.Kill())
		}
		assert.Equal(t, c.files, c.describeFiles(t), "%s has written to its root folder", name)
	})
	return c
}

// isolate returns a command that runs a command with the container's root folder and user.
func (c *container) isolate(t *testing.T, i *image, command []string, port string) []string {
	t.Helper()
	user := c.user(t, i)
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	if isolated {
		chroot, err := exec.LookPath("chroot")
		require.NoError(t, err)
		return append([]string{chroot, "--userspec=" + user, "--groups=", c.root}, command...)
	}
	for a := range command {
		for _, m := range c.VolumeMounts {
			command[a] = strings.Replace(command[a], "="+m.MountPath, "="+filepath.Join(c.root, m.MountPath), 1)
		}
	}
	command[0] = filepath.Join(c.root, command[0])
	return append(command, "--kubeconfig="+c.kubeconfig(t, port), "--leader-election-namespace="+c.pod.Namespace)
}

// user returns the ids of user and group that the container runs as. A kubelet refuses to start it as root, and does not look up
// names.
func (c *container) user(t *testing.T, i *image) string {
	t.Helper()
	require.True(t, *c.pod.Spec.SecurityContext.RunAsNonRoot)
	require.Nil(t, c.pod.Spec.SecurityContext.RunAsUser, "the user of the image counts")
	require.Nil(t, c.SecurityContext.RunAsUser, "the user of the image counts")
	user, group, _ := strings.Cut(i.user, ":")
	for _, id := range []string{user, group} {
		number, err := strconv.Atoi(id)
		require.NoError(t, err, "the image has no numbers as its user and group")
		require.Positive(t, number, "the image runs as root")
	}
	return i.user
}

const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// kubeconfig writes a kubeconfig with the same access as the mounted files, and returns its path.
func (c *container) kubeconfig(t *testing.T, port string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(api.Config{
		CurrentContext: "pod",
		Contexts:       map[string]*api.Context{"pod": {Cluster: "pod", AuthInfo: "pod"}},
		Clusters: map[string]*api.Cluster{"pod": {
			Server: "https://127.0.0.1:" + port, CertificateAuthority: filepath.Join(c.root, accountFolder, "ca.crt"),
		}},
		AuthInfos: map[string]*api.AuthInfo{"pod": {TokenFile: filepath.Join(c.root, accountFolder, "token")}},
	}, file))
	return file
}

// value returns the value of an environment variable, which may be a field of the pod or refer to variables before it.
func (c *container) value(t *testing.T, variable corev1.EnvVar, before []string) string {
	t.Helper()
	if variable.ValueFrom == nil {
		return expand(variable.Value, before)
	}
	require.NotNil(t, variable.ValueFrom.FieldRef, "the environment variable %s comes from elsewhere", variable.Name)
	return field(t, c.pod, variable.ValueFrom.FieldRef.FieldPath)
}

var reference = regexp.MustCompile(`\$\([A-Za-z_][A-Za-z0-9_]*\)`)

// expand replaces $(NAME) by the value of an environment variable. An unknown variable stays.
func expand(text string, env []string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		prefix := found[2:len(found)-1] + "="
		for _, variable := range slices.Backward(env) {
			if value, ok := strings.CutPrefix(variable, prefix); ok {
				return value
			}
		}
		return found
	})
}

// linkFiles links all files of a folder into another one.
func linkFiles(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, below), 0o755)
		}
		return os.Link(file, filepath.Join(to, below))
	}))
}

// describeFiles returns names, sizes and times of the files and folders of the container.
func (c *container) describeFiles(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(c.root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		fmt.Fprintln(&all, strings.TrimPrefix(file, c.root), info.Size(), info.ModTime())
		return err
	})
	require.NoError(t, err)
	return all.String()
}

// web is a client that keeps no connections, asks for no compression and trusts any certificate, as kubelets do.
var web = &http.Client{Transport: &http.Transport{
	DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
}}

// get sends a request, with a token unless it is empty, and returns the status and the body of the answer: 0 if there is none.
func get(address, token string) (status int, body string) {
	ctx, cancel := context.WithTimeout(context.Background(), operatortest.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err.Error()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := web.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// probe sends the request of a probe, as the kubelet does, and returns the status of the answer: 0 if there is none.
func (c *container) probe(t *testing.T, p *corev1.Probe) int {
	t.Helper()
	require.NotNil(t, p.HTTPGet)
	scheme := strings.ToLower(string(p.HTTPGet.Scheme))
	status, _ := get((&url.URL{Scheme: scheme, Host: c.endpoint(t, p.HTTPGet.Port), Path: p.HTTPGet.Path}).String(), "")
	return status
}

// endpoint returns the address of a port of the container, which may have a name.
func (c *container) endpoint(t *testing.T, port intstr.IntOrString) string {
	t.Helper()
	number := port.IntValue()
	for _, p := range c.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			number = int(p.ContainerPort)
		}
	}
	require.Positive(t, number, "the container has no port %s", port.String())
	return net.JoinHostPort(c.address, strconv.Itoa(number))
}

// eventually waits until done returns true. It asks less often than tests that only read objects: a request for metrics or of a
// probe costs both sides a connection.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 250*time.Millisecond, operatortest.Patience, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	require.NoError(t, err, "waiting until %s", what)
}

// await waits until the answer to a probe has a status. The process must not end before.
func (c *container) await(t *testing.T, p *corev1.Probe, status int) {
	t.Helper()
	eventually(t, p.HTTPGet.Path+" of "+c.pod.Name+" is "+strconv.Itoa(status), func() bool {
		require.NoError(t, c.process.Err())
		return c.probe(t, p) == status
	})
}

// awaitReady waits until both probes succeed.
func (c *container) awaitReady(t *testing.T) {
	t.Helper()
	c.await(t, c.LivenessProbe, http.StatusOK)
	c.await(t, c.ReadinessProbe, http.StatusOK)
}

// terminate ends the process as a kubelet does when the pod is deleted.
func (c *container) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, c.process.Err())
	require.NoError(t, syscall.Kill(c.process.PID(), syscall.SIGTERM))
	c.awaitEnd(t)
	assert.ErrorContains(t, c.process.Err(), "exit status 0", "it ends in order")
}

func (c *container) awaitEnd(t *testing.T) {
	t.Helper()
	eventually(t, c.pod.Name+" ends", func() bool { return c.process.Err() != nil })
}

// metrics returns the status and the body of the answer to a request for metrics.
func (c *container) metrics(t *testing.T, token string) (status int, body string) {
	t.Helper()
	return get("https://"+path.Join(c.endpoint(t, intstr.FromString("metrics")), "metrics"), token)
}

// leads reports whether the metrics say that the process is the leader.
func (c *container) leads(t *testing.T, token string) bool {
	t.Helper()
	_, body := c.metrics(t, token)
	_, status, _ := strings.Cut(body, "\nleader_election_master_status{")
	status, _, _ = strings.Cut(status, "\n")
	return strings.HasSuffix(status, "} 1")
}
