// Package diffusers reads the components of diffusion pipelines as diffusers
// 0.42 keeps them: a component's config.json, whose _class_name says what it
// is, and a pipeline's folder with model_index.json.
package diffusers
