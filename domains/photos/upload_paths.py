from tailrace.web.bodies import UploadPaths

PICTURES = UploadPaths("/api/photos", "/photos/upload", setting="PHOTOS_MAX_MEGABYTES")
