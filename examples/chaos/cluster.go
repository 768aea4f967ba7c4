package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/registry/registrytest"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/internal/launch"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// cluster is what fails: a control plane, a database, and the operators, which reach the API server through a proxy.
type cluster struct {
	cp       *controlplane.ControlPlane
	db       *mariadb.Server
	proxy    *proxy
	replicas []*replica
	client   client.Client // the users' client; it does not use the proxy
	registry *registrytest.Registry
	web      *httptest.Server // serves the registry
}

// start starts a cluster without faults. It has ten nodes: there are some hundreds of pods, and a node runs 110.
func start(ctx context.Context) (c *cluster, err error) {
	c = &cluster{registry: registrytest.New()}
	c.web = httptest.NewServer(c.registry)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	say("starting a control plane and a database")
	if c.cp, err = controlplane.Start(ctx, controlplane.Options{Nodes: new(10)}); err != nil {
		return c, err
	}
	if c.db, err = mariadb.Start(ctx); err != nil {
		return c, err
	}
	if c.proxy, err = newProxy(strings.TrimPrefix(c.cp.Config().Host, "https://")); err != nil {
		return c, err
	}
	scheme := runtime.NewScheme()
	if err = errors.Join(clientgoscheme.AddToScheme(scheme), cachev1.AddToScheme(scheme), appv1.AddToScheme(scheme),
		userv1alpha1.AddToScheme(scheme), eruv1.AddToScheme(scheme), storev1alpha1.AddToScheme(scheme)); err != nil {
		return c, err
	}
	if c.client, err = client.New(c.cp.Config(), client.Options{Scheme: scheme}); err != nil {
		return c, err
	}
	for _, namespace := range []string{"memcacheds", "apps", "accounts", "caches", "schedules"} {
		if err = c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return c, err
		}
	}
	for _, example := range []string{"memcached", "app", "databaseuser", "cache", "eru"} {
		say("starting two replicas of the %s operator", example)
		if err = c.install(ctx, example); err != nil {
			return c, err
		}
	}
	return c, nil
}

// install deploys an operator. Its replicas run on this machine and not in pods, since simulated nodes run no containers.
func (c *cluster) install(ctx context.Context, example string) error {
	folder := "examples/" + example + "/config"
	if err := c.cp.InstallCRDs(ctx, folder+"/crd/bases"); err != nil {
		return err
	}
	if _, err := c.cp.Kubectl(ctx, "apply", "--server-side", "--kustomize", launch.Manifests(folder),
		"--selector", "app.kubernetes.io/component!=manager"); err != nil {
		return err
	}
	kubeconfig, err := launch.Access(ctx, c.cp, example+"-system", example+"-controller-manager", "https://"+c.proxy.address())
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect", "--zap-stacktrace-level=panic",
		"--leader-election-namespace=" + example + "-system",
	}
	if example == "cache" {
		args = append(args, "--registry="+c.web.URL)
	}
	if example == "databaseuser" {
		credentials, err := c.credentials()
		if err != nil {
			return err
		}
		args = append(args, "--target=chaos", "--database-address="+c.db.Address(), "--database-credentials="+credentials)
	}
	binary := filepath.Join(c.folder(), example+"-operator")
	if err := launch.Build(ctx, example, binary); err != nil {
		return err
	}
	for i := range 2 {
		r := &replica{cluster: c, name: fmt.Sprintf("%s-%d", example, i+1), binary: binary, args: args}
		if err := r.start(); err != nil {
			return err
		}
		c.replicas = append(c.replicas, r)
	}
	return nil
}

// credentials writes the operator's user name and password to files that only the current user can read.
func (c *cluster) credentials() (folder string, err error) {
	folder = filepath.Join(c.folder(), "database")
	admin := c.db.Admin()
	return folder, errors.Join(os.Mkdir(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "username"), []byte(admin.User), 0o600),
		os.WriteFile(filepath.Join(folder, "password"), []byte(admin.Password), 0o600))
}

// folder returns the folder of the control plane, which is removed with it.
func (c *cluster) folder() string { return filepath.Dir(c.cp.Kubeconfig()) }

// leave prints how to look at what keeps running. The proxy does not: the operators get no events any more.
func (c *cluster) leave() error {
	cp, err := c.cp.Detach()
	db, err2 := c.db.Detach()
	fmt.Printf("To look around: export KUBECONFIG=%s\n                mariadb --no-defaults --socket=%s --user=root\nTo stop it all: kill %d %d\n",
		c.cp.Kubeconfig(), c.db.Socket(), cp, db)
	return errors.Join(err, err2)
}

func (c *cluster) stop() error {
	var errs []error
	c.web.Close()
	if c.cp != nil {
		errs = append(errs, c.cp.Stop())
	}
	if c.db != nil {
		errs = append(errs, c.db.Stop())
	}
	if c.proxy != nil {
		errs = append(errs, c.proxy.stop())
	}
	return errors.Join(errs...)
}

// settle waits until the function differences finds none.
func (c *cluster) settle(ctx context.Context, what string, limit time.Duration, differences func(context.Context) ([]string, error)) error {
	began := time.Now()
	for {
		different, err := differences(ctx)
		switch {
		case err == nil && len(different) == 0:
			fmt.Printf("After %.0f s: %s.\n", time.Since(began).Seconds(), what)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(began) > limit:
			for _, r := range c.replicas {
				fmt.Fprintf(os.Stderr, "\nThe last lines that %s logged:\n%s\n", r.name, r.process.Tail())
			}
			return errors.Join(fmt.Errorf("expected within %v: %s; but:\n%s", limit, what, strings.Join(different, "\n")), err)
		}
		say("%d differences are left", len(different))
		if err := pause(ctx, 3*time.Second); err != nil {
			return err
		}
	}
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "chaos: "+format+"\n", args...)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
