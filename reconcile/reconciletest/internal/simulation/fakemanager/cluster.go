package fakemanager

import (
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster implements controller-runtime's cluster.Cluster for a [Manager], except Start and GetEventRecorder.
type cluster struct {
	options Options
	cache   *Cache
}

// GetConfig returns a config whose clients reach the server by the transport of the options. The clients do not limit the rate of requests.
// Each call returns another config.
func (c *cluster) GetConfig() *rest.Config {
	return &rest.Config{
		Host: "https://reconciletest.invalid", Transport: c.options.Transport, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, // without this, controller-runtime would send protobuf for built-in kinds
	}
}

// GetHTTPClient returns a client for [Manager.GetConfig].
func (c *cluster) GetHTTPClient() *http.Client { return &http.Client{Transport: c.options.Transport} }

// GetCache returns [Manager.Cache].
func (c *cluster) GetCache() cache.Cache { return c.cache }

// GetScheme returns the scheme of the options.
func (c *cluster) GetScheme() *runtime.Scheme { return c.options.Scheme }

// GetClient returns the client of the options.
func (c *cluster) GetClient() client.Client { return c.options.Client }

// GetFieldIndexer returns [Manager.Cache].
func (c *cluster) GetFieldIndexer() client.FieldIndexer { return c.cache }

// GetRESTMapper returns the client's RESTMapper.
func (c *cluster) GetRESTMapper() meta.RESTMapper { return c.options.Client.RESTMapper() }

// GetAPIReader returns the reader of the options.
func (c *cluster) GetAPIReader() client.Reader { return c.options.APIReader }

// GetEventRecorderFor returns the recorder of the options for the legacy events API.
func (c *cluster) GetEventRecorderFor(string) record.EventRecorder {
	return c.options.LegacyEventRecorder
}

// GetLogger returns the process's logger.
func (c *cluster) GetLogger() logr.Logger { return c.options.Logger }
