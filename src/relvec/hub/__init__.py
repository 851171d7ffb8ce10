"""What comes from elsewhere: the catalogue of models, downloads, the network, the cache folder."""
